/** Adds a kind of work, `echo`: its halves are in one folder of libs/testing, and one entry in each of two lists. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@darkroom/config';
import { EngineKinds, imageEngine, textEngine } from '@darkroom/executor';
import { createKinds, imageKind, text } from '@darkroom/kinds';
import { createLogger } from '@darkroom/service';
import { echo, echoEngine } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';
import { processEngine } from '../../apps/worker/src/engine/process-engine.ts';
import { MemoryKeeper } from '../../apps/worker/src/memory/memory-keeper.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import { InProcessExecutor } from '../../libs/executor/src/testing/in-process-executor.ts';
import { openFormer } from './open-former.ts';
import { optionsOf } from './worker-bench.ts';

const kinds = createKinds([imageKind, text, echo]);
const engineKinds = new EngineKinds([echoEngine, textEngine, imageEngine]);

async function createModel(id: string, files: Record<string, string>): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'darkroom-kind-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  const directory = join(parent, id);
  await mkdir(directory);
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  return directory;
}

async function kindOf(files: Record<string, string>): Promise<string> {
  return (await engineKinds.detect(await createModel('some', files))).id;
}

it('detects the kind of a model directory, also beside kinds with the same files', async () => {
  expect(await kindOf({ 'config.json': '{"model_type":"echo"}' })).toBe('echo');
  expect(await kindOf({ 'config.json': '{"model_type":"llama"}' })).toBe('text');
  expect(await kindOf({ 'config.json': '{}', 'model_index.json': '{}' })).toBe('image');
});

it('serves a model of a new kind: detected, described, loaded, submitted, run, encoded and fetched', async () => {
  const modelDir = await createModel('parrot', {
    'config.json': '{"model_type":"echo","max_characters":40}',
    'weights.dat': '',
  });
  const test = await openTestApi({ kinds });
  const { store, api } = test;
  await openFormer(store, { maxSize: 100, slowTickMs: 1000 }).former.start();
  const config = { ...loadConfig('worker', { MODEL_DIR: modelDir }), batchMaxSize: 3 };
  const lines: string[] = [];
  const log = createLogger({ app: 'test', stream: { write: (line: string) => void lines.push(line) } });
  const memory = new MemoryKeeper({ budgetBytes: 100e6, maxWaitMs: 0, log });
  const { loads, ...options } = optionsOf(
    store,
    (onEvents) =>
      new InProcessExecutor({
        loadPipeline: async () => (await engineKinds.detect(modelDir)).load({ directory: modelDir }),
        maxSlots: 12,
        onEvents,
      }),
  );
  const engine = await processEngine(config, { kinds: engineKinds, loads, restart: () => {}, memory, log });
  expect(engine).toMatchObject({ capacity: 12, card: { id: 'parrot', kind: 'echo', maxCharacters: 40 } });
  expect(lines[0]).toContain('echo model found');

  const worker = new Worker({
    ...engine,
    ...options,
    loads,
    kinds: engineKinds,
    card: engine.card,
    capacity: 12,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  // Its process without weights, and ten bytes for each slot.
  expect(engine.shared?.allocation.needBytes).toBe(50e6 + 120);
  const id = await test.submit({ model: 'parrot', prompt: 'say something about foxes' });
  const poll = async () => (await (await api.request(`/v1/predict/${id}`)).json()) as object;
  await expect.poll(poll).toMatchObject({ status: 'succeeded', text: 'say something about foxes', finish_reason: 25 });
  await writeFile(join(modelDir, 'weights.dat'), 'other');
  expect([await engine.files?.check(), engine.files?.changed]).toEqual([true, ['weights.dat']]);
});
