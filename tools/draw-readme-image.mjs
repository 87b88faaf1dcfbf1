// Draws docs/images/developing.png for the README: previews and results of eight prompts, all rows in one batch.
// After `npm run build`: node tools/draw-readme-image.mjs
import { loadPipeline } from '@darkroom/diffusion';
import sharp from 'sharp';

const prompts = [
  'a red apple on a white background',
  'a penguin on a blue background',
  'a rocket on a black background',
  'a panda on a pink background',
  'pizza, green background',
  'a cat face on a purple background',
  'a guitar on a yellow background',
  'a fox on a gray background',
];
const previewSteps = [1, 3, 6, 10];
const size = 128;
const gap = 6;

const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
const rows = [];
for (const [index, prompt] of prompts.entries()) {
  const input = { prompt, negativePrompt: '', width: size, height: size, n: 1, numInferenceSteps: 20 };
  const drawing = { guidanceScale: 3, seed: 42 + index, scheduler: 'dpmpp_2m', previewEvery: 1 };
  const file = { outputFormat: 'png', outputCompression: 100 };
  rows.push(...(await pipeline.createRows({ id: `row-${index}`, input: { ...input, ...drawing, ...file } })));
}

const cells = [];
for (let step = 1; step <= 20; step++) {
  const { events } = await pipeline.step(rows);
  const line = previewSteps.indexOf(step);
  if (line >= 0)
    for (const [column, row] of rows.entries()) cells.push({ line, column, ...events.get(row)[0].preview });
}
for (const [column, row] of rows.entries())
  cells.push({ line: previewSteps.length, column, ...(await pipeline.finish(row)) });
await pipeline.dispose();

const tiles = cells.map(async ({ line, column, data, facts: { width, height } }) => ({
  input: await sharp(data, { raw: { width, height, channels: 3 } })
    .resize(size, size, { kernel: 'cubic' })
    .png()
    .toBuffer(),
  left: gap + column * (size + gap),
  top: gap + line * (size + gap),
}));
const width = gap + prompts.length * (size + gap);
const height = gap + (previewSteps.length + 1) * (size + gap);
await sharp({ create: { width, height, channels: 3, background: '#16161a' } })
  .composite(await Promise.all(tiles))
  .png({ compressionLevel: 9, palette: true })
  .toFile('docs/images/developing.png');
