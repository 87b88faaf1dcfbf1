import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { addWeights } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { runCheck } from './run-check.ts';

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const tiny = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-2/model');

it('measures loading, one step and decoding', async () => {
  const { load, step, decode } = await runCheck({ model: { directory, threads: 1 } }, new AbortController().signal);
  for (const { ms } of [load, step, decode]) expect(ms).toBeGreaterThan(0);
  // The UNet alone is 36 MB in memory, once its INT8 weights are folded to fp32.
  expect(load.peakBytes).toBeGreaterThan(36e6);
  expect(decode.peakBytes).toBeGreaterThanOrEqual(step.peakBytes);
});

it('unloads text encoders with LOW_MEMORY', async ({ skip }) => {
  skip(process.platform !== 'linux', 'only of Linux it is known that freed memory is gone from the process');
  const copy = join(await mkdtemp(join(tmpdir(), 'darkroom-check-')), 'tiny');
  onTestFinished(() => rm(join(copy, '..'), { recursive: true }));
  await cp(tiny, copy, { recursive: true });
  const megabytes = 80;
  const weights = { output: 'last_hidden_state', width: 32, matrices: megabytes / 16 };
  addWeights(join(copy, 'text_encoder/model.onnx'), weights);
  const check = (hasLowMemory: boolean) =>
    runCheck({ model: { directory: copy, threads: 1, hasLowMemory } }, new AbortController().signal);
  const [much, little] = [await check(false), await check(true)];
  // After the load with its warm-up, and again after encoding a prompt.
  for (const part of ['load', 'encode', 'step', 'decode'] as const)
    expect(much[part].bytes - little[part].bytes).toBeGreaterThan(megabytes * 0.8e6);
});

it('reports how its process was killed', async () => {
  // Before the process is even running.
  const stop = new AbortController();
  const checking = runCheck({ model: { directory, threads: 1 } }, stop.signal);
  stop.abort();
  await expect(checking).rejects.toThrow(
    'While the model was loaded, its process was killed (SIGKILL), as the kernel does when memory runs out',
  );
});

it('reports the error of ONNX Runtime for a damaged model', async () => {
  const copy = join(await mkdtemp(join(tmpdir(), 'darkroom-check-')), 'tiny');
  onTestFinished(() => rm(join(copy, '..'), { recursive: true }));
  await cp(directory, copy, { recursive: true });
  await cp(join(copy, 'vae_encoder/model_int8.onnx'), join(copy, 'vae_decoder/model_int8.onnx'));
  await expect(runCheck({ model: { directory: copy } }, new AbortController().signal)).rejects.toThrow(
    /^vae_decoder\/model_int8\.onnx: does not accept latent_sample \[1, 4, 4, 4\], which the other model files require \(.*sample/,
  );
});
