// Draws the thumbnails of `examples` in a model's darkroom.json with the model itself and its defaults.
// After `npm run build`: node tools/draw-examples.mjs [directory of the model]
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { loadPipeline } from '@darkroom/diffusion';
import sharp from 'sharp';

/** Pixels. */
const side = 128;
const directory = process.argv[2] ?? 'models/emoji-sd';
const { examples = [] } = JSON.parse(await readFile(join(directory, 'darkroom.json'), 'utf8'));
for (const { image } of examples) {
  await mkdir(dirname(join(directory, image)), { recursive: true });
  // A model does not load without them.
  await appendFile(join(directory, image), '');
}
const pipeline = await loadPipeline({ directory });
const { sizes, steps, guidance, defaultScheduler: scheduler } = pipeline.card;

for (const { prompt, seed, image } of examples) {
  const { width, height } = sizes.default;
  const text = { prompt, negativePrompt: '', width, height, n: 1, numInferenceSteps: steps.default, seed };
  const input = { ...text, guidanceScale: guidance.default, scheduler, previewEvery: 0 };
  const [row] = await pipeline.createRows({ id: 'row', input });
  while (!row.isDone) await pipeline.step([row]);
  const { data } = await pipeline.finish(row);
  const file = join(directory, image);
  const { size } = await sharp(data, { raw: { width, height, channels: 3 } })
    .resize(side, side, { fit: 'cover' })
    .toFile(file);
  console.log(file, size);
}
