/** NUM_WORKER_PROCESSES: several worker processes that one parent starts, supervises and stops. */
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { make, poll, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';

interface Status {
  workers: { id: string; loaded: boolean }[];
}

it('registers all worker processes, and unregisters them when their parent stops', async () => {
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
  // The API refreshes its list of workers once a second.
  await expect.poll(loaded, { timeout: 10_000 }).toEqual(both);
  const bodies = ['a cat face', 'a rocket'].map((prompt) => ({ prompt, num_inference_steps: 4, seed: 1 }));
  await Promise.all(bodies.map((body) => make(system.url, body)));
  const worker = system.part('worker');
  await worker.stop();
  await expect.poll(loaded, { timeout: 10_000 }).toEqual([]);
  expect(worker.process.exitCode).toBe(0);
});

const model = 'toy_writer';

/** Settings of workers with four slots, by kind of executor. */
const executors = {
  'an upstream server': async () => {
    const toy = new ToyOpenai();
    const UPSTREAM_URL = await toy.start();
    onTestFinished(() => toy.stop().then(() => {}));
    return { EXECUTOR: 'http', UPSTREAM_URL, UPSTREAM_SLOTS: '4' };
  },
  'a custom module': () =>
    Promise.resolve({ EXECUTOR: join(import.meta.dirname, '..', 'chaos', 'fixtures', 'module.mjs') }),
};

it.each(Object.entries(executors))('gives each worker process its own slots with %s', async (_name, settingsOf) => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'] });
  await system.start('worker', { ...(await settingsOf()), MODEL_ID: model, NUM_WORKER_PROCESSES: '2' });
  const loaded = async (): Promise<number> => {
    const { workers } = (await (await fetch(`${system.url}/status`)).json()) as Status;
    return workers.filter((worker) => worker.loaded).length;
  };
  await expect.poll(loaded, { timeout: 60_000 }).toBe(2);
  const body = { model, prompt: 'wish', max_tokens: 100_000 };
  const ids = await Promise.all(Array.from({ length: 8 }, (_, seed) => submit(system.url, { ...body, seed })));
  const states = () => Promise.all(ids.map(async (id) => (await poll(system.url, id)).status));
  await expect.poll(states, { timeout: 30_000 }).toEqual(ids.map(() => 'running'));
});
