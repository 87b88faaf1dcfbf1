// Tokens a second of the text pipeline and of llama.cpp with the same weights, one thread each, in turns:
//   node bench/text-beside-llama.mjs <model directory> <dtype> <directory with node-llama-cpp> <GGUF file> [<rows>,…]
// in a built checkout. Prompts of 37 tokens, 48 written; nothing of the queue, HTTP and sampling but the greedy choice. Seconds
// are those of a CPU that the process had: on a busy machine those on the wall say who was let go first.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { loadTextPipeline } from '../libs/language/dist/index.js';

const [directory, dtype, llama, file, sizes = '1,4,8,16'] = process.argv.slice(2);
const rounds = 5;
const tokens = 48;
const promptTokens = 37;

if (directory === 'ours') await serve(dtype, llama);
else await compare();

async function compare() {
  const us = await start(process.execPath, [import.meta.filename, 'ours', directory, dtype]);
  const them = await start(process.execPath, [new URL('llama-batched.mjs', import.meta.url).pathname, llama, file]);
  console.log('rows  ours, tokens/s of a CPU  llama.cpp, tokens/s of a CPU  ours / llama.cpp (worst, best)');
  for (const rows of sizes.split(',').map(Number)) {
    const pairs = [];
    for (let round = 0; round <= rounds; round++) pairs.push([await us.ask(rows), await them.ask(rows)]);
    // The first warms both up.
    pairs.shift();
    const [ours, theirs, ratios] = [
      pairs.map(([our]) => our),
      pairs.map(([, their]) => their),
      pairs.map(([our, their]) => our / their),
    ];
    const range = `${Math.min(...ratios).toFixed(2)}, ${Math.max(...ratios).toFixed(2)}`;
    console.log(
      `${rows}  ${median(ours).toFixed(1)}  ${median(theirs).toFixed(1)}  ${median(ratios).toFixed(2)} (${range})`,
    );
  }
  us.child.kill();
  them.child.kill();
}

async function start(command, words) {
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${command} ended (${(await once(child, 'close'))[0]})`);
    return value;
  };
  await line();
  return {
    child,
    ask: async (rows) => {
      child.stdin.write(`${rows} ${tokens}\n`);
      return Number((await line()).split(' ')[1]);
    },
  };
}

/** Answers each line `<rows> <tokens>`, as llama-batched.mjs does. */
async function serve(path, chosen) {
  const dtypes = { all: chosen, parts: {} };
  const pipeline = await loadTextPipeline({ directory: path, id: 'ours', threads: 1, dtypes });
  console.log('ready');
  let round = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const [count, most] = line.split(' ').map(Number);
    const rows = [];
    round++;
    for (let row = 0; row < count; row++)
      rows.push(...(await pipeline.createRows({ id: `${row}`, input: inputOf(row, most) })));
    const open = (shape) => rows.filter(({ isDone, shapeKey }) => !isDone && shapeKey === shape);
    while (open('read').length > 0) await pipeline.step(open('read'));
    const startedAtMs = performance.now();
    const before = process.cpuUsage();
    while (open('write').length > 0) await pipeline.step(open('write'));
    const { user, system } = process.cpuUsage(before);
    const seconds = (performance.now() - startedAtMs) / 1000;
    console.log((count * most) / seconds, (count * most) / ((user + system) / 1e6));
    for (const row of rows) pipeline.release(row);
  }

  /** A prompt of its own each round, so that none is kept from the one before. */
  function inputOf(row, most) {
    const prompt = Array.from({ length: promptTokens }, (_, at) => 100 + ((at * 31 + row * 7 + round * 1009) % 40_000));
    const greedy = { temperature: 0, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 };
    // The first token comes with the prompt.
    return { prompt, n: 1, maxTokens: most + 1, ...greedy, logitBias: {}, seed: 1, stop: [], ignoreEos: true };
  }
}

function median(values) {
  return values.toSorted((left, right) => left - right)[Math.floor((values.length - 1) / 2)];
}
