// Loads a model's directory as a worker does and makes one picture: node make-picture.mjs DIRECTORY DTYPE
import { loadPipeline } from '../../../libs/diffusion/dist/index.js';

const [directory, dtype] = process.argv.slice(2);
const pipeline = await loadPipeline({ directory, dtypes: { all: dtype, parts: {} }, threads: 1 });
const [row] = await pipeline.createRows({
  id: 'request',
  input: {
    prompt: 'a cat on a blue background',
    negativePrompt: '',
    width: 128,
    height: 128,
    n: 1,
    numInferenceSteps: 4,
    guidanceScale: 3,
    seed: 7,
    scheduler: 'dpmpp_2m',
    outputFormat: 'png',
    outputCompression: 100,
    previewEvery: 1,
  },
});
let preview;
while (!row.isDone) {
  const { events, failures } = await pipeline.step([row]);
  for (const error of failures.values()) throw error;
  preview = events.get(row)[0].preview ?? preview;
}
const { data, facts } = await pipeline.finish(row);
await pipeline.dispose();
console.log(JSON.stringify({ bytes: data.length, facts, values: new Set(data).size, preview: preview.facts }));
