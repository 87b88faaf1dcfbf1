/** Tests images from upstream servers: the bodies sent, and files passed on unchanged. */
import type { ImageCard, ImageInput } from '@darkroom/kinds';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ToyOpenai } from '../testing/toy-openai.ts';
import { createOpenai } from './openai.ts';
import { UpstreamExecutor } from './upstream-executor.ts';

const input: ImageInput = {
  prompt: 'a wish',
  negativePrompt: 'no cats',
  width: 64,
  height: 96,
  n: 2,
  numInferenceSteps: 8,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'ddim',
  outputFormat: 'webp',
  outputCompression: 90,
  previewEvery: 2,
};
const drawn = Buffer.from('\x89PNG\r\n\x1a\n a wish 64x96', 'latin1');

async function open(entry: object, model: string) {
  const toy = new ToyOpenai();
  toy.models = [entry];
  const log = new EventLog();
  const url = await toy.start();
  const executor = new UpstreamExecutor({
    url,
    createProtocol: createOpenai,
    model,
    maxSlots: 2,
    onEvents: log.listener,
  });
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as ImageCard;
  executor.submit([{ id: 'a', input, indexes: [1] }]);
  await log.end('a');
  return { log, card, body: toy.bodies[0]! };
}

it('sends all fields to another Darkroom, and adopts its limits', async () => {
  const { log, card, body } = await open(
    {
      id: 'emoji-sd',
      kind: 'image',
      sizes: { multiple: 32, min: 64, max: 256 },
      steps: { min: 1, max: 200 },
      guidance: { min: 1, max: 20 },
      schedulers: ['ddim', 'euler'],
      max_prompt_tokens: 77,
      defaults: { size: '128x96', num_inference_steps: 12, guidance_scale: 3, scheduler: 'ddim' },
    },
    'emoji-sd',
  );
  expect(card).toMatchObject({
    kind: 'image',
    sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 96 } },
    steps: { min: 1, max: 200, default: 12 },
    guidance: { min: 1, max: 20, default: 3 },
    schedulers: ['ddim'],
    maxPromptTokens: 77,
  });
  expect(body).toEqual({
    model: 'emoji-sd',
    prompt: 'a wish',
    n: 1,
    size: '64x96',
    stream: true,
    partial_images: 3,
    output_format: 'webp',
    output_compression: 90,
    seed: 8,
    num_inference_steps: 8,
    guidance_scale: 3,
    guidance_rescale: 0,
    negative_prompt: 'no cats',
  });
  const previews = log.of('progress');
  expect(previews.map(({ done, total }) => [done, total])).toEqual([
    [1, 8],
    [2, 8],
    [3, 8],
    [8, 8],
  ]);
  expect(previews[0]!.preview).toMatchObject({ contentType: 'image/png', data: drawn });
  const { output } = log.of('output')[0]!;
  expect(output).toEqual({ data: drawn, contentType: 'image/png', facts: { width: 64, height: 96, seed: 8 } });
});

it.each([
  [{ id: 'gpt-image-1' }, { stream: true, partial_images: 3, output_format: 'webp' }],
  [{ id: 'flux', type: 'image' }, { response_format: 'b64_json' }],
  [{ id: 'flux', architecture: { output_modalities: ['image'] } }, { response_format: 'b64_json' }],
])('sends only prompt and size to a server with no metadata: %j', async (entry, more) => {
  const { log, card, body } = await open(entry, entry.id);
  expect(card).toMatchObject({ kind: 'image', steps: { min: 4, max: 4 }, guidance: { min: 1, max: 1 } });
  expect(body).toEqual({ model: entry.id, prompt: 'a wish', n: 1, size: '64x96', ...more });
  expect(log.of('output')).toMatchObject([{ index: 1, output: { data: drawn, contentType: 'image/png' } }]);
});

it('loses a request whose image is not an image file, naming the server', async () => {
  const toy = new ToyOpenai();
  toy.models = [{ id: 'flux', type: 'image' }];
  const log = new EventLog();
  const url = await toy.start();
  const options = { url, createProtocol: createOpenai, model: 'flux', maxSlots: 2, onEvents: log.listener };
  const executor = new UpstreamExecutor(options);
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  await executor.start();
  toy.fault = (_request, response, body) =>
    body !== undefined && Boolean(response.end(JSON.stringify({ data: [{ b64_json: btoa('<html>no</html>') }] })));
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  expect(await log.end('a')).toMatchObject({
    type: 'request-lost',
    message: `${url} sent 15 bytes as an image, expected PNG, JPEG or WebP`,
  });
  expect(log.of('output')).toEqual([]);
});
