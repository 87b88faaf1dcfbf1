/** A worker that is told how to use its machine does so, and says it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { make } from '../e2e/client.ts';
import { openSystem, type System } from '../e2e/system.ts';

const wide = { prompt: 'a red apple on a white background', size: '256x192', num_inference_steps: 4, seed: 3 };

/** What the worker has logged under one message. */
function logged(system: System, message: string): Record<string, unknown>[] {
  // ONNX Runtime writes lines of its own between ours.
  const lines = readFileSync(system.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'));
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ app, msg }) => app === 'worker' && msg === message);
}

const pixelsOf = (png: Buffer): Promise<Buffer> => sharp(png).removeAlpha().raw().toBuffer();

it('makes the pictures of a machine with much memory on one with little', async () => {
  const system = await openSystem();
  const expected = await pixelsOf(await make(system.url, wide));
  await system.part('worker').stop();
  await system.start('worker', { LOW_MEMORY: 'true', VAE_TILE_SIZE: '64' });
  const again = { ...wide, size: '64x64' };
  for (const prompt of ['a cat', 'a dog', wide.prompt]) await make(system.url, { ...again, prompt });
  const pixels = await pixelsOf(await make(system.url, wide));
  expect(pixels).toHaveLength(expected.length);
  const worst = pixels.reduce((most, value, at) => Math.max(most, Math.abs(value - expected[at]!)), 0);
  expect(worst).toBeLessThanOrEqual(2);
  // Else the engine's process would keep what is freed in it.
  const worker = String(system.parts.findLast(({ name }) => name === 'worker')!.process.pid);
  const engine = execFileSync('pgrep', ['-P', worker], { encoding: 'utf8' }).trim();
  expect(readFileSync(`/proc/${engine}/environ`, 'utf8').split('\0')).toContain('MALLOC_TRIM_THRESHOLD_=131072');
});

it('runs on the next device where one is missing, and says so in its log and its status', async () => {
  const system = await openSystem({ environment: { DEVICE: 'cuda:0,cpu' } });
  await make(system.url, { ...wide, size: '64x64' });
  const parts = ['text_encoder', 'unet', 'vae_decoder', 'upscaler_x2', 'vae_encoder'];
  const refused = parts.map((part) => ({
    part,
    device: 'cuda:0',
    level: 'warn',
    reason: expect.stringContaining('Failed to load shared library') as string,
  }));
  expect(logged(system, 'does not run on a device asked for')).toMatchObject(refused);
  const runsOn = parts.map((part) => ({ part, device: 'cpu', asked: ['cuda:0', 'cpu'] }));
  expect(logged(system, 'runs on')).toMatchObject(runsOn);
  const status = (await (await fetch(`${system.url}/status`)).json()) as { workers: { device: string }[] };
  expect(status.workers).toMatchObject([{ device: 'cpu' }]);
});

it('says in its log what the list of models says: that the rows of one do not keep their bytes', async () => {
  const system = await openSystem({ environment: { MODEL_DIR: 'tools/golden/vectors/text/plain' } });
  const reason = 'the last bits of a row change with the rows that share its steps';
  const listed = (await (await fetch(`${system.url}/v1/models`)).json()) as { data: object[] };
  expect(listed.data).toMatchObject([{ id: 'plain', deterministic: false, deterministic_reason: reason }]);
  const warned = logged(system, 'the same request may get another text in other company');
  expect(warned).toMatchObject([{ level: 'warn', model: 'plain', reason }]);
});

it('does not start where the device it must run on is missing', async () => {
  const system = await openSystem({ parts: ['api'] });
  const worker = system.launch('worker', { DEVICE: 'cuda:0,cpu', STRICT_PROVIDER: 'true' });
  await expect(worker.ready).rejects.toThrow(/ended/);
  const health = (await (await fetch(`${system.url}/health`)).json()) as Record<string, unknown>;
  const reason = 'failed to load: text_encoder/model_int8.onnx: a model file could not be loaded on cuda:0';
  expect(health).toMatchObject({ status: 'degraded', failed_to_load: [{ model: 'emoji-sd', reason }] });
});
