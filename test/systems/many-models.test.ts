/** MODEL_DIRS: real models of both kinds in one worker process, with less room than they need. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addWeights } from '@darkroom/testing';
import { statusSchema } from '../../apps/api/src/v1/status.ts';
import { expect, it, onTestFinished } from 'vitest';
import { ended, picture, stream, submit, typesOf } from '../e2e/client.ts';
import { openSystem, patience, type System } from '../e2e/system.ts';

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
    environment: patience,
  });
}

async function workersOf(url: string): Promise<unknown[]> {
  const { workers } = statusSchema.parse(await (await fetch(`${url}/status`)).json());
  return workers.map(({ id, model, loaded }) => ({ id, model, loaded })).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function list(...loaded: string[]): unknown[] {
  return models.map((model) => ({ id: `box-${model}`, model, loaded: loaded.includes(model) }));
}

it('serves the others where one can never fit and one is damaged, and says of both why', async () => {
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
      reason: expect.stringMatching(/^large takes 3\d\d MB of memory, and MEMORY_BUDGET_MB is 300$/) as string,
    },
  ]);
  expect(await ended(url, await submit(url, written('emoji-writer')))).toBe('succeeded');
  const refused = await fetch(`${url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...drawn, model: 'large' }),
  });
  expect(refused.status).toBe(404);
});

it('loads each when it is asked for; with room for one they take turns, and a picture is the same each time', async () => {
  const system = await openModels({ MEMORY_BUDGET_MB: '260', COLD_START_MAX_WAIT_S: '1' });
  const { url } = system;
  await expect.poll(() => workersOf(url)).toEqual(list());
  const listed = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(listed.data.map(({ id }) => id).toSorted()).toEqual(models);
  const first = await submit(url, drawn);
  expect(typesOf(await stream(url, first))).toContain('loading');
  await expect.poll(() => workersOf(url), { timeout: 10_000 }).toEqual(list('emoji-sd'));
  for (const model of ['emoji-writer', 'second-writer'])
    expect(await ended(url, await submit(url, written(model)))).toBe('succeeded');
  // All at once: each waits for its turn.
  const all = [drawn, written('emoji-writer'), written('second-writer'), drawn];
  const ids = await Promise.all(all.map((body) => submit(url, body)));
  for (const id of ids) expect(await ended(url, id)).toBe('succeeded');
  expect(await picture(url, ids[0]!)).toEqual(await picture(url, first));
  const metrics = await (await fetch(`${system.part('worker').metricsUrl}/metrics`)).text();
  const drawnLoads = /darkroom_model_loads_total\{model="emoji-sd",[^}]*\} (?<count>\d+)/.exec(metrics);
  expect(Number(drawnLoads?.groups?.['count'])).toBeGreaterThanOrEqual(2);
  for (const model of models)
    expect(metrics).toMatch(new RegExp(`darkroom_rows_joined_total\\{model="${model}",[^}]*\\} [1-9]`));
});
