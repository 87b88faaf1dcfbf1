/** MODEL_DIRS: image and text models in one worker process, with enough memory for all or for one at a time. */
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addWeights } from '@darkroom/testing';
import { statusSchema } from '../../apps/api/src/v1/status.ts';
import { expect, it, onTestFinished } from 'vitest';
import { ended, fetchImage, poll, stream, submit, typesOf, postJson } from '../e2e/client.ts';
import { openSystem, longWorkerTtl, type System } from '../e2e/system.ts';

const root = new URL('../../models/', import.meta.url).pathname;
const models = ['emoji-sd', 'emoji-writer', 'second-writer'];
const drawn = { model: 'emoji-sd', prompt: 'a red apple', seed: 7, num_inference_steps: 2, preview: 'off' };

function written(model: string) {
  return { model, prompt: 'something sweet', max_tokens: 4, seed: 1 };
}

async function openModels(
  environment: Record<string, string>,
  change: (directory: string) => void = () => {},
): Promise<System> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-many-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const name of ['emoji-sd', 'emoji-writer']) cpSync(join(root, name), join(directory, name), { recursive: true });
  cpSync(join(root, 'emoji-writer'), join(directory, 'second-writer'), { recursive: true });
  change(directory);
  return openSystem({
    parts: [
      'api',
      'batch-former',
      'janitor',
      { name: 'worker', environment: { MODEL_DIRS: `${directory}/*`, WORKER_ID: 'box', ...environment } },
    ],
    environment: longWorkerTtl,
  });
}

async function workersOf(url: string): Promise<unknown[]> {
  const { workers } = statusSchema.parse(await (await fetch(`${url}/status`)).json());
  return workers.map(({ id, model, loaded }) => ({ id, model, loaded })).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function list(...loaded: string[]): unknown[] {
  return models.map((model) => ({ id: `box-${model}`, model, loaded: loaded.includes(model) }));
}

it('reports a model that exceeds MEMORY_BUDGET_MB and a damaged one, and serves the others', async () => {
  const system = await openModels({ MEMORY_BUDGET_MB: '300' }, (directory) => {
    cpSync(join(root, 'emoji-sd'), join(directory, 'large'), { recursive: true });
    const weights = { output: 'last_hidden_state', width: 128, matrices: 17 };
    addWeights(join(directory, 'large/text_encoder/model_int8.onnx'), weights);
    rmSync(join(directory, 'emoji-sd/tokenizer/merges.txt'));
  });
  const { url } = system;
  expect(await workersOf(url)).toEqual(list().slice(1));
  const { failed_to_load: failures } = statusSchema.parse(await (await fetch(`${url}/status`)).json());
  expect(failures).toMatchObject([
    { model: 'emoji-sd', reason: 'tokenizer/merges.txt: is missing' },
    {
      model: 'large',
      reason: expect.stringMatching(
        /^large needs 3\d\d MB of memory, expected at most MEMORY_BUDGET_MB \(300\)$/,
      ) as string,
    },
  ]);
  expect(await ended(url, await submit(url, written('emoji-writer')))).toBe('succeeded');
  const refused = await postJson(`${url}/v1/predict`, { ...drawn, model: 'large' });
  expect(refused.status).toBe(404);
});

it('loads models on demand and swaps them when memory fits only one, with the same bytes', async () => {
  const system = await openModels({ MEMORY_BUDGET_MB: '260' });
  const { url } = system;
  await expect.poll(() => workersOf(url)).toEqual(list());
  const listed = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(listed.data.map(({ id }) => id).toSorted()).toEqual(models);
  const first = await submit(url, drawn);
  expect(typesOf(await stream(url, first))).toContain('loading');
  await expect.poll(() => workersOf(url), { timeout: 10_000 }).toEqual(list('emoji-sd'));
  for (const model of ['emoji-writer', 'second-writer'])
    expect(await ended(url, await submit(url, written(model)))).toBe('succeeded');
  // Requests of all models at once: each model waits until it can be loaded.
  const all = [drawn, written('emoji-writer'), written('second-writer'), drawn];
  const ids = await Promise.all(all.map((body) => submit(url, body)));
  for (const id of ids) expect(await ended(url, id)).toBe('succeeded');
  expect(await fetchImage(url, ids[0]!)).toEqual(await fetchImage(url, first));
  const metrics = await (await fetch(`${system.part('worker').metricsUrl}/metrics`)).text();
  const drawnLoads = /darkroom_model_loads_total\{model="emoji-sd",[^}]*\} (?<count>\d+)/.exec(metrics);
  expect(Number(drawnLoads?.groups?.['count'])).toBeGreaterThanOrEqual(2);
  for (const model of models)
    expect(metrics).toMatch(new RegExp(`darkroom_rows_joined_total\\{model="${model}",[^}]*\\} [1-9]`));
});

/** Returns the expected status of a worker with free KV-cache slots for two texts of `tokens` tokens. */
function statusWithSlots(state: string, tokens: number): object {
  const rows = 2 * tokens;
  return { state, rows, free: rows, card: { max_model_len: tokens } };
}

/** Sets the context length in `config.json`, from which the worker computes its capacity. */
async function setLength(directory: string, max_position_embeddings: number): Promise<void> {
  const file = join(directory, 'config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(`${file}.new`, JSON.stringify({ ...config, max_position_embeddings }));
  await rename(`${file}.new`, file);
}

it('loads all models at startup without a memory budget, and isolates a killed engine from the others', async () => {
  const system = await openModels({});
  const { url } = system;
  expect(await workersOf(url)).toEqual(list(...models));
  const drawing = await submit(url, { ...drawn, num_inference_steps: 60 });
  const engines = enginesOf(system.part('worker').process.pid!);
  expect(engines).toHaveLength(3);
  // Engines start in the order of model names.
  process.kill(engines[1]!, 'SIGKILL');
  const submits = ['emoji-writer', 'second-writer'].map((model) => submit(url, written(model)));
  for (const id of [drawing, ...(await Promise.all(submits))]) expect(await ended(url, id)).toBe('succeeded');
  expect(typesOf(await stream(url, drawing)).filter((type) => type === 'started')).toHaveLength(1);
  // The worker restarts the engine.
  await expect.poll(() => workersOf(url)).toEqual(list(...models));
  const after = enginesOf(system.part('worker').process.pid!);
  expect([after.includes(engines[0]!), after.includes(engines[2]!), after.includes(engines[1]!)]).toEqual([
    true,
    true,
    false,
  ]);
});

function enginesOf(worker: number): number[] {
  return execFileSync('pgrep', ['-P', `${worker}`, '-f', 'engine-process'], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number);
}

it('publishes the new model card and capacity of changed files after a wake-up or a restart', async () => {
  let home = '';
  const { url } = await openModels(
    { MEMORY_BUDGET_MB: '2000', KV_TOKENS: '', BATCH_MAX_SIZE: '2' },
    (directory) => (home = directory),
  );
  const model = 'emoji-writer';
  const shown = async () => {
    const { workers } = statusSchema.parse(await (await fetch(`${url}/status`)).json());
    const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    const { state, rows, free_rows: free } = workers.find(({ id }) => id === `box-${model}`)!;
    return { state, rows, free, card: data.find(({ id }) => id === model) };
  };
  await expect.poll(shown).toMatchObject(statusWithSlots('asleep', 256));
  await setLength(join(home, model), 200);
  expect(await ended(url, await submit(url, written(model)))).toBe('succeeded');
  await expect.poll(shown).toMatchObject(statusWithSlots('idle', 200));

  await setLength(join(home, model), 160);
  expect((await fetch(`${url}/admin/models/${model}/restart`, { method: 'POST' })).status).toBe(202);
  const ids: string[] = [];
  await expect
    .poll(async () => {
      ids.push(await submit(url, written(model)));
      return (await shown()).card;
    })
    .toMatchObject({ max_model_len: 160 });
  for (const id of ids) expect(await ended(url, id)).toBe('succeeded');
  await expect.poll(shown).toMatchObject(statusWithSlots('idle', 160));
});

it('keeps requests queued after a failed restart, reports why, and serves them after a repair', async () => {
  let home = '';
  const { url } = await openModels({}, (directory) => (home = directory));
  const model = 'emoji-writer';
  const graph = join(home, model, 'onnx', 'model_int8.onnx');
  expect(await ended(url, await submit(url, written(model)))).toBe('succeeded');
  renameSync(graph, `${graph}.kept`);
  writeFileSync(graph, readFileSync(`${graph}.kept`).subarray(0, 100_000));
  expect((await fetch(`${url}/admin/models/${model}/restart`, { method: 'POST' })).status).toBe(202);
  const shown = async () => {
    const status = statusSchema.parse(await (await fetch(`${url}/status`)).json());
    return [status.workers.find(({ id }) => id === `box-${model}`)?.state, status.failed_to_load];
  };
  const reason = expect.stringContaining('onnx/model_int8.onnx') as string;
  // The worker is not registered until it can load its model.
  await expect.poll(shown, { timeout: 20_000 }).toMatchObject([undefined, [{ model, reason }]]);
  const waiting = await submit(url, written(model));
  // The other models are served.
  expect(await ended(url, await submit(url, written('second-writer')))).toBe('succeeded');
  expect(await poll(url, waiting)).toMatchObject({ status: 'queued' });
  renameSync(`${graph}.kept`, graph);
  const types = typesOf(await stream(url, waiting));
  // The request was leased once, after the model had loaded.
  expect([types.slice(0, 3), types.at(-2)]).toEqual([['queued', 'started', 'delta'], 'succeeded']);
  await expect.poll(shown).toEqual(['idle', []]);
});
