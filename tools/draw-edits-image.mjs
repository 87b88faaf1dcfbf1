// Draws docs/images/edits.png, the README's example of edits: pairs of input and output images.
// After `npm run build`: node tools/draw-edits-image.mjs
import { loadPipeline } from '@darkroom/diffusion';
import sharp from 'sharp';

const size = 128;
const gap = 6;
const grey = '#808080';
const isInside =
  ([left, top], radius) =>
  (x, y) =>
    (x - left) ** 2 + (y - top) ** 2 < radius ** 2;
/** Pixels by which the mask exceeds the hole: a latent covers 8 × 8 pixels, so those at the edge contain grey. */
const margin = 10;

/** Prompts of the input and the output image, and the hole that is cut out of the input. */
const edits = [
  { from: 'a red apple on a blue background', to: 'a strawberry on a blue background', strength: 0.7 },
  { from: 'a panda on a pink background', to: 'a cat face on a pink background', strength: 0.8 },
  { from: 'a fox on a green background', to: 'a fox on a green background', hole: { center: [64, 64], radius: 20 } },
  {
    from: 'a penguin on a yellow background',
    to: 'a penguin on a yellow background',
    hole: { center: [64, 30], radius: 22 },
  },
];

const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });

async function draw(prompt, { seed, attachments, ...changes }) {
  const text = { prompt, negativePrompt: '', width: size, height: size, n: 1, numInferenceSteps: 20 };
  const input = { ...text, guidanceScale: 3, seed, scheduler: 'dpmpp_2m', previewEvery: 0, ...changes };
  const [row] = await pipeline.createRows({ id: 'row', input, ...(attachments && { attachments }) });
  while (!row.isDone) await pipeline.step([row]);
  const { data } = await pipeline.finish(row);
  return sharp(data, { raw: { width: size, height: size, channels: 3 } })
    .png()
    .toBuffer();
}

/** Returns a mask that is white in the hole and a margin around it. */
function maskOf({ center, radius }, wider = 0) {
  const isMasked = isInside(center, radius + wider);
  const data = Uint8Array.from({ length: size * size }, (_, at) =>
    isMasked(at % size, Math.floor(at / size)) ? 255 : 0,
  );
  return sharp(data, { raw: { width: size, height: size, channels: 1 } })
    .png()
    .toBuffer();
}

/** Returns the image with grey in the hole. */
async function cutOut(image, mask) {
  const alpha = await sharp(mask).extractChannel(0).toBuffer();
  const cover = sharp({ create: { width: size, height: size, channels: 3, background: grey } }).joinChannel(alpha);
  return sharp(image)
    .composite([{ input: await cover.png().toBuffer() }])
    .removeAlpha()
    .png()
    .toBuffer();
}

const tiles = [];
for (const [index, { from, to, strength = 1, hole }] of edits.entries()) {
  const drawn = await draw(from, { seed: 42 + index });
  const mask = hole && (await maskOf(hole, margin));
  const given = hole ? await cutOut(drawn, await maskOf(hole)) : drawn;
  const attachments = new Map([['image', given], ...(mask ? [['mask', mask]] : [])]);
  const request = { seed: 7, image: true, strength, attachments, ...(mask && { mask: true }) };
  tiles.push(given, await draw(to, request));
}
await pipeline.dispose();

// Pairs are further apart than the images of a pair.
const lefts = tiles.map((_, at) => gap + at * (size + gap) + Math.floor(at / 2) * 2 * gap);
await sharp({
  create: { width: lefts.at(-1) + size + gap, height: size + 2 * gap, channels: 3, background: '#16161a' },
})
  .composite(tiles.map((input, at) => ({ input, left: lefts[at], top: gap })))
  .png({ compressionLevel: 9, palette: true })
  .toFile('docs/images/edits.png');
