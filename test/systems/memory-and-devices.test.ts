/** Memory and device settings of a worker: LOW_MEMORY and DEVICE. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { make } from '../e2e/client.ts';
import { openSystem, type System } from '../e2e/system.ts';

const wide = { prompt: 'a red apple on a white background', size: '256x192', num_inference_steps: 4, seed: 3 };

/** Returns the worker's log lines with this message. */
function logged(system: System, message: string): Record<string, unknown>[] {
  // ONNX Runtime writes lines that are not JSON into the same file.
  const lines = readFileSync(system.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'));
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ app, msg }) => app === 'worker' && msg === message);
}

const pixelsOf = (png: Buffer): Promise<Buffer> => sharp(png).removeAlpha().raw().toBuffer();

it('draws the same image within 2 levels with LOW_MEMORY', async () => {
  const system = await openSystem();
  const expected = await pixelsOf(await make(system.url, wide));
  await system.part('worker').stop();
  await system.start('worker', { LOW_MEMORY: 'true' });
  const again = { ...wide, size: '64x64' };
  for (const prompt of ['a cat', 'a dog', wide.prompt]) await make(system.url, { ...again, prompt });
  const pixels = await pixelsOf(await make(system.url, wide));
  expect(pixels).toHaveLength(expected.length);
  const worst = pixels.reduce((most, value, at) => Math.max(most, Math.abs(value - expected[at]!)), 0);
  expect(worst).toBeLessThanOrEqual(2);
  // Makes glibc return freed memory of the engine process to the system.
  const worker = String(system.parts.findLast(({ name }) => name === 'worker')!.process.pid);
  const engine = execFileSync('pgrep', ['-P', worker], { encoding: 'utf8' }).trim();
  expect(readFileSync(`/proc/${engine}/environ`, 'utf8').split('\0')).toContain('MALLOC_TRIM_THRESHOLD_=131072');
});

it('falls back to the next device in DEVICE, and shows that in its log and /status', async () => {
  const system = await openSystem({ environment: { DEVICE: 'cuda:0,cpu' } });
  await make(system.url, { ...wide, size: '64x64' });
  const parts = ['text_encoder', 'unet', 'vae_decoder', 'upscaler_x2', 'vae_encoder'];
  const refused = parts.map((part) => ({
    part,
    device: 'cuda:0',
    level: 'warn',
    reason: expect.stringContaining('Failed to load shared library') as string,
  }));
  expect(logged(system, 'device refused')).toMatchObject(refused);
  const runsOn = parts.map((part) => ({ part, device: 'cpu', requested: ['cuda:0', 'cpu'] }));
  expect(logged(system, 'part loaded')).toMatchObject(runsOn);
  const status = (await (await fetch(`${system.url}/status`)).json()) as { workers: { device: string }[] };
  expect(status.workers).toMatchObject([{ device: 'cpu' }]);
});

it('warns in the log and in /v1/models that a model is not deterministic in batches', async () => {
  const system = await openSystem({ environment: { MODEL_DIR: 'tools/golden/vectors/text/plain' } });
  const reason = 'the last bits of a row change with the rows that share its steps';
  const listed = (await (await fetch(`${system.url}/v1/models`)).json()) as { data: object[] };
  expect(listed.data).toMatchObject([{ id: 'plain', deterministic: false, deterministic_reason: reason }]);
  const warned = logged(system, 'outputs depend on the batch: the same request may get a different text');
  expect(warned).toMatchObject([{ level: 'warn', model: 'plain', reason }]);
});

it('does not start when the only device is missing', async () => {
  const system = await openSystem({ parts: ['api'] });
  const worker = system.launch('worker', { DEVICE: 'cuda:0' });
  await expect(worker.ready).rejects.toThrow(/ended/);
  const health = (await (await fetch(`${system.url}/health`)).json()) as Record<string, unknown>;
  const reason = 'failed to load: text_encoder/model_int8.onnx: a model file could not be loaded on cuda:0';
  expect(health).toMatchObject({ status: 'degraded', failed_to_load: [{ model: 'emoji-sd', reason }] });
});
