/** NUM_WORKER_PROCESSES: several workers that are started, watched and stopped as one. */
import { expect, it } from 'vitest';
import { make } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';

interface Status {
  workers: { id: string; loaded: boolean }[];
}

it('both register and take work, and leave with the process that keeps them', async () => {
  const system = await openSystem({
    parts: ['api', 'batch-former', 'janitor', 'worker'],
    environment: { NUM_WORKER_PROCESSES: '2', WORKER_ID: 'gpu-host', BATCH_MAX_SIZE: '1' },
  });
  const loaded = async (): Promise<string[]> => {
    const { workers } = (await (await fetch(`${system.url}/status`)).json()) as Status;
    return workers
      .filter((worker) => worker.loaded)
      .map(({ id }) => id)
      .toSorted();
  };
  const both = ['gpu-host-0', 'gpu-host-1'];
  const ready = async (): Promise<number> => (await fetch(`${system.part('worker').metricsUrl}/ready`)).status;
  await expect.poll(ready, { timeout: 60_000 }).toBe(200);
  // The API looks once a second.
  await expect.poll(loaded, { timeout: 10_000 }).toEqual(both);
  const bodies = ['a cat face', 'a rocket'].map((prompt) => ({ prompt, num_inference_steps: 4, seed: 1 }));
  await Promise.all(bodies.map((body) => make(system.url, body)));
  const worker = system.part('worker');
  await worker.stop();
  await expect.poll(loaded, { timeout: 10_000 }).toEqual([]);
  expect(worker.process.exitCode).toBe(0);
});
