// Draws docs/images/loras.png for docs/image-models.md: prompts with the bundled model's LoRAs, all rows in one batch.
// After `npm run build`: node tools/draw-loras-image.mjs
import { loadPipeline } from '@darkroom/diffusion';
import sharp from 'sharp';

const prompts = [
  'a fox on a green background',
  'a rocket on a black background',
  'a red apple on a white background',
  'a cat face on a purple background',
  'a sailboat on a blue background',
];
const styles = [
  undefined,
  [{ id: 'pixels', scale: 1.4 }],
  [{ id: 'sunset', scale: 1 }],
  [
    { id: 'pixels', scale: 1 },
    { id: 'sunset', scale: 0.7 },
  ],
];
const size = 128;
const gap = 6;

const pipeline = await loadPipeline({ directory: process.argv[2] ?? 'models/emoji-sd' });
const cells = [];
for (const [line, loras] of styles.entries()) {
  for (const [column, prompt] of prompts.entries()) {
    const input = { prompt, negativePrompt: '', width: size, height: size, n: 1, numInferenceSteps: 20, loras };
    const drawing = { guidanceScale: 3, seed: 42 + column, scheduler: 'dpmpp_2m', previewEvery: 0 };
    const [row] = await pipeline.createRows({ id: `row-${line}-${column}`, input: { ...input, ...drawing } });
    cells.push({ line, column, row });
  }
}
const rows = cells.map(({ row }) => row);
while (rows.some((row) => !row.isDone)) await pipeline.step(rows);
const tiles = [];
for (const { line, column, row } of cells) {
  const { data } = await pipeline.finish(row);
  tiles.push({
    input: await sharp(data, { raw: { width: size, height: size, channels: 3 } })
      .png()
      .toBuffer(),
    left: gap + column * (size + gap),
    top: gap + line * (size + gap),
  });
}
await pipeline.dispose();

const width = gap + prompts.length * (size + gap);
const height = gap + styles.length * (size + gap);
await sharp({ create: { width, height, channels: 3, background: '#16161a' } })
  .composite(tiles)
  .png({ compressionLevel: 9, palette: true })
  .toFile('docs/images/loras.png');
