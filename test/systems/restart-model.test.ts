/** A model's files are replaced while two workers serve it: the loaded weights stay in use until a restart. */
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { statusSchema } from '../../apps/api/src/v1/status.ts';
import { expect, it, onTestFinished } from 'vitest';
import { ended, make, submit } from '../e2e/client.ts';
import { openSystem, longWorkerTtl } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', seed: 7, num_inference_steps: 4, preview: 'off' };

/** Replaces some weights of the denoiser atomically (by rename). */
async function replaceWeights(directory: string): Promise<void> {
  const file = join(directory, 'unet/model_int8.onnx');
  const bytes = await readFile(file);
  await writeFile(`${file}.new`, bytes.fill(7, bytes.length >> 1, (bytes.length >> 1) + 1000));
  await rename(`${file}.new`, file);
}

it('restarts with changed files one worker at a time without losing requests', async () => {
  const home = await mkdtemp(join(tmpdir(), 'darkroom-restart-'));
  onTestFinished(() => rm(home, { recursive: true }));
  const directory = join(home, 'emoji-sd');
  await cp('models/emoji-sd', directory, { recursive: true });
  const system = await openSystem({
    environment: { ...longWorkerTtl, MODEL_DIR: directory, NUM_WORKER_PROCESSES: '2', BATCH_MAX_SIZE: '2' },
  });
  const { url } = system;
  const workers = async () => statusSchema.parse(await (await fetch(`${url}/status`)).json()).workers;
  const shown = async () => (await workers()).map((worker) => [worker.loaded, worker.changed_files]);
  await expect.poll(shown, { timeout: 60_000 }).toEqual([
    [true, null],
    [true, null],
  ]);
  const before = await make(url, quick);

  await replaceWeights(directory);
  const replaced = [true, 'unet/model_int8.onnx'];
  await expect.poll(shown, { timeout: 30_000 }).toEqual([replaced, replaced]);
  expect(await make(url, quick)).toEqual(before);

  const ids: string[] = [];
  const restarting = await fetch(`${url}/admin/models/emoji-sd/restart`, { method: 'POST' });
  expect([restarting.status, await restarting.json()]).toMatchObject([
    202,
    { workers: [expect.anything(), expect.anything()] },
  ]);
  const loadedCounts: number[] = [];
  await expect
    .poll(
      async () => {
        ids.push(await submit(url, { ...quick, seed: ids.length }));
        const now = await shown();
        loadedCounts.push(now.filter(([isLoaded]) => isLoaded).length);
        return now;
      },
      { timeout: 60_000, interval: 200 },
    )
    .toEqual([
      [true, null],
      [true, null],
    ]);
  // At least one worker was loaded at any time.
  expect(Math.min(...loadedCounts)).toBeGreaterThan(0);
  for (const id of ids) expect(await ended(url, id)).toBe('succeeded');
  const after = await make(url, quick);
  expect(after).not.toEqual(before);
  expect(await make(url, quick)).toEqual(after);
});
