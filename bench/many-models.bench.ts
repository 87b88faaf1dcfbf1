/**
 * Six models with memory for two: the latency cost of loading, against one worker per model. Requests choose models by
 * a Zipf distribution: the first model gets six times as many requests as the last.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { publish } from './publish.ts';
import { percentileTable } from './table.ts';

const models = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'];
const requests = 60;
const services = ['api', 'batch-former', 'janitor'] as const;

/** Returns the model of each request; the same in every run. */
function drawModels(): string[] {
  const weights = models.map((_model, rank) => 1 / (rank + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let state = 1;
  return Array.from({ length: requests }, () => {
    state = (state * 48_271) % 2_147_483_647;
    let left = (state / 2_147_483_647) * sum;
    return models.find((_model, rank) => (left -= weights[rank]!) <= 0) ?? models.at(-1)!;
  });
}

/** Runs a closed loop of clients; returns the times from submission to the end in s. */
async function runClients(url: string, clients: number): Promise<number[]> {
  const drawn = drawModels();
  const times: number[] = [];
  const client = async (): Promise<void> => {
    for (let model = drawn.shift(); model !== undefined; model = drawn.shift()) {
      const begin = performance.now();
      const body = { model, prompt: 'a red apple', num_inference_steps: 4, preview: 'off', seed: times.length };
      const id = await submit(url, body);
      const outcome = await ended(url, id);
      if (outcome !== 'succeeded') throw new Error(`${id} ${outcome}`);
      times.push((performance.now() - begin) / 1000);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return times;
}

async function loadsOf(system: System): Promise<number> {
  const metrics = await (await fetch(`${system.part('worker').metricsUrl}/metrics`)).text();
  return [...metrics.matchAll(/^darkroom_model_loads_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
}

async function withSystem(workers: Record<string, string>[], use: (system: System) => Promise<void>): Promise<void> {
  const parts = workers.map((environment) => ({ name: 'worker' as const, environment }));
  const system = await startSystem({ parts: [...services, ...parts], environment: longWorkerTtl });
  try {
    await use(system);
  } finally {
    await stopSystem(system);
  }
}

it('six models that share memory for two, against six workers', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  for (const model of models) cpSync('models/emoji-sd', join(directory, model), { recursive: true });
  const found: Record<string, readonly number[]> = {};
  const loads: [clients: number, perRequest: number][] = [];
  try {
    // Enough for two models, not for three.
    await withSystem([{ MODEL_DIRS: `${directory}/*`, MEMORY_BUDGET_MB: '500' }], async (system) => {
      let before = 0;
      for (const clients of [1, 4]) {
        found[`room for two, clients: ${clients}`] = await runClients(system.url, clients);
        const after = await loadsOf(system);
        loads.push([clients, (after - before) / requests]);
        before = after;
      }
    });
    await withSystem(
      models.map((model) => ({ MODEL_DIR: join(directory, model) })),
      async ({ url }) => {
        for (const clients of [1, 4]) found[`a worker for each, clients: ${clients}`] = await runClients(url, clients);
      },
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
  publish({
    name: 'many-models',
    title: 'Six models in turns in the room of two, beside a worker for each',
    notes: [
      `${requests} images of 4 steps by copies of the embedded model; the first gets six times as many requests as the last (Zipf). Clients submit the next request when the last one ends.`,
      'The loads include the first load of each model.',
    ],
    tables: [
      percentileTable('From POST to the end, s (less is better)', found),
      { title: 'Loads for each request, with room for two', columns: ['clients', 'loads'], rows: loads },
    ],
  });
}, 900_000);
