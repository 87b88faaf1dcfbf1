// node record-images.mjs <model> <requests.json>: the requests with an image of each in fp32, on standard output.
import { readFile } from 'node:fs/promises';
import { loadPipeline } from '../../libs/diffusion/dist/index.js';

const [directory, file] = process.argv.slice(2);
const dtypes = { all: 'fp32', parts: {} };
const pipeline = await loadPipeline({ directory, id: 'tiny', dtypes, threads: 1 });
const runs = [];
for (const request of JSON.parse(await readFile(file, 'utf8'))) {
  const input = { negativePrompt: '', n: 1, previewEvery: 0, ...request };
  const [row] = await pipeline.createRows({ id: 'request', input });
  while (!row.isDone) await pipeline.step([row]);
  const { data } = await pipeline.finish(row);
  runs.push({ request, image: Buffer.from(data).toString('base64') });
}
console.log(`[\n${runs.map((run) => JSON.stringify(run)).join(',\n')}\n]`);
