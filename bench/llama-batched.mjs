// llama.cpp, a call for all rows, as its server has them: reads lines `<rows> <tokens>`, and says for each the tokens that it
// wrote in a second, and in a second of a CPU. It is node-llama-cpp's, which brings the code for each kind of CPU with it:
//   npm install --prefix /tmp/llama --ignore-scripts node-llama-cpp@3.22.1
//   node bench/llama-batched.mjs /tmp/llama <GGUF file>
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [prefix, modelPath] = process.argv.slice(2);
const promptTokens = 37;
const mostRows = 16;

const { resolve } = createRequire(`${prefix}/package.json`);
const { getLlama } = await import(pathToFileURL(resolve('node-llama-cpp')).href);
const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false });
const model = await llama.loadModel({ modelPath, gpuLayers: 0 });
const sizes = { sequences: mostRows, contextSize: 256, batchSize: mostRows * promptTokens };
// What is below its own loop, which waits for other callers before each batch.
// oxlint-disable no-underscore-dangle
const { _ctx: context } = await model.createContext({ ...sizes, threads: 1 });
context.setThreads(1);
const sampler = new llama._bindings.AddonSampler(model._model);
sampler.applyConfig({ temperature: 0 });

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [rows, tokens] = line.split(' ').map(Number);
  for (let row = 0; row < mostRows; row++) context.disposeSequence(row);
  const promptOf = (row) => Uint32Array.from({ length: promptTokens }, (_, at) => 100 + ((at * 31 + row * 7) % 40_000));
  let next = await decode(
    0,
    Array.from({ length: rows }, (_, row) => promptOf(row)),
  );
  const startedAtMs = performance.now();
  const before = process.cpuUsage();
  for (let step = 0; step < tokens; step++)
    next = await decode(
      promptTokens + step,
      next.map((id) => Uint32Array.of(id)),
    );
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - startedAtMs) / 1000;
  console.log((rows * tokens) / seconds, (rows * tokens) / ((user + system) / 1e6));
}
// Its threads would keep the process.
process.exit();

/** @returns each row's best token after these. */
async function decode(from, rows) {
  context.initBatch(rows.reduce((sum, { length }) => sum + length, 0));
  const places = rows.map((ids, row) => context.addToBatch(row, from, ids, Uint32Array.of(ids.length - 1))[0]);
  await context.decodeBatch();
  const chosen = [];
  for (const place of places) chosen.push(await context.sampleToken(place, sampler));
  return chosen;
}
