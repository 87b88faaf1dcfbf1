/** stable-diffusion.cpp's server as an upstream: what it receives, and what happens to its jobs. */
import { decodeRgb } from '@darkroom/imaging';
import type { ImageCard, ImageInput } from '@darkroom/kinds';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { toyPng } from '../testing/toy-png.ts';
import { ToySdcpp } from '../testing/toy-sdcpp.ts';
import { createSdcpp, Sdcpp } from './sdcpp.ts';
import { UpstreamExecutor } from './upstream-executor.ts';

const input: ImageInput = {
  prompt: 'a fox at dawn',
  negativePrompt: 'no cats',
  width: 64,
  height: 128,
  n: 2,
  numInferenceSteps: 6,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'auto',
  outputFormat: 'webp',
  outputCompression: 90,
  previewEvery: 2,
};

async function open() {
  const toy = new ToySdcpp();
  const url = await toy.start();
  const log = new EventLog();
  const executor = new UpstreamExecutor({
    url,
    createProtocol: (options) => new Sdcpp({ ...options, pollMs: 1 }),
    model: 'toy',
    retryMs: 1,
    checkEveryMs: 600_000,
    onEvents: log.listener,
  });
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as ImageCard;
  return { toy, url, log, executor, card };
}

it('describes the model by the capabilities of the server', async () => {
  const { card, executor } = await open();
  expect(card).toMatchObject({
    sizes: { multiple: 64, min: 64, max: 4096, default: { width: 512, height: 512 } },
    steps: { min: 1, max: 150, default: 20 },
    guidance: { min: 0, max: 30, default: 7 },
    schedulers: ['auto', 'euler', 'euler_a'],
    defaultScheduler: 'auto',
    takes: ['image', 'mask'],
    loras: [{ id: 'pixels', rank: 0 }],
    unsupported: ['guidance_rescale'],
  });
  expect(executor.maxSlots).toBe(1);
});

it('sends a job with the fields of the request, and a format that the server has', async () => {
  const { toy, log, executor } = await open();
  executor.submit([{ id: 'a', input, indexes: [1] }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(toy.bodies[0]).toEqual({
    prompt: 'a fox at dawn',
    negative_prompt: 'no cats',
    width: 64,
    height: 128,
    seed: 8,
    batch_count: 1,
    sample_params: { sample_steps: 6, guidance: { txt_cfg: 3 } },
    output_format: 'png',
    output_compression: 90,
    embed_image_metadata: false,
  });
  const { data, contentType, facts } = log.of('output')[0]!.output;
  expect({ contentType, facts }).toEqual({ contentType: 'image/png', facts: { width: 8, height: 8, seed: 8 } });
  expect(await decodeRgb(data)).toEqual(await decodeRgb(await toyPng(JSON.stringify(toy.bodies[0]))));
});

it('sends the scheduler, adapters by their paths, the input image and the mask', async () => {
  const { toy, log, executor } = await open();
  const [image, mask] = [Buffer.from('image'), Buffer.from('mask')];
  const loras = [{ id: 'pixels', scale: 0.5 }];
  const changes = { scheduler: 'euler', loras, image: true, mask: true, strength: 0.5 } as const;
  const attachments = new Map([
    ['image', image],
    ['mask', mask],
  ]);
  executor.submit([{ id: 'a', input: { ...input, ...changes }, indexes: [0], attachments }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(toy.bodies[0]).toMatchObject({
    sample_params: { sample_method: 'euler' },
    lora: [{ path: 'styles/pixels.safetensors', multiplier: 0.5 }],
    init_image: image.toString('base64'),
    mask_image: mask.toString('base64'),
    strength: 0.5,
  });
});

it('cancels a job that waits', async () => {
  const { toy, log, executor } = await open();
  executor.submit([{ id: 'a', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  await expect.poll(() => toy.jobs.size).toBe(1);
  executor.cancel('a');
  await log.end('a');
  await expect.poll(() => toy.jobs.get('job_0')?.status).toBe('cancelled');
});

it('loses a request whose job fails, without the prompt in its message', async () => {
  const { log, executor, url } = await open();
  executor.submit([{ id: 'a', input: { ...input, prompt: 'boom, a secret wish' }, indexes: [0] }]);
  const end = await log.end('a');
  expect(end).toMatchObject({ message: expect.stringMatching(`^${url} broke off: `) as string });
  expect(end.type).toBe('request-lost');
  expect(JSON.stringify(end)).not.toContain('secret wish');
});

it('loses only the request whose job a restarted server no longer has', async () => {
  const { toy, log, executor, url } = await open();
  toy.beforeJob = () => toy.jobs.clear();
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  expect(await log.end('a')).toMatchObject({
    type: 'request-lost',
    message: `${url} no longer has the job: it was restarted`,
  });
  expect(log.of('engine-lost')).toEqual([]);
});

it('refuses a server that draws no images', async () => {
  const toy = new ToySdcpp();
  toy.fault = (_request, response) => Boolean(response.end(JSON.stringify({ supported_modes: ['vid_gen'] })));
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const executor = new UpstreamExecutor({ url, createProtocol: createSdcpp, model: 'toy', onEvents: () => {} });
  await expect(executor.start()).rejects.toMatchObject({
    code: 'model_unsupported',
    message: expect.stringContaining('without a mode for images') as string,
  });
});
