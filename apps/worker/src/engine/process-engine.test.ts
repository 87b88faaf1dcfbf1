import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadConfig } from '@darkroom/config';
import { engineKinds } from '@darkroom/executor';
import { silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import type { LoadWatch } from './load-watch.ts';
import { processEngine } from './process-engine.ts';

async function open(directory: string) {
  const loads = { watch: (load) => load() } as Pick<LoadWatch, 'watch'> as LoadWatch;
  const config = loadConfig('worker', {
    MODEL_DIR: directory,
    MODEL_ID: 'some',
    BATCH_MAX_SIZE: '3',
    KV_TOKENS: '100',
  });
  return processEngine(config, { kinds: engineKinds, loads, restart: () => {}, log: silentLogger() });
}

it('reads capacity and card from the files, by their kind', async () => {
  const models = resolve(import.meta.dirname, '../../../../models');
  const image = await open(join(models, 'emoji-sd'));
  expect(image).toMatchObject({ capacity: 3, card: { id: 'some', kind: 'image' }, asset: undefined });
  const text = await open(join(models, 'emoji-writer'));
  expect(text).toMatchObject({ capacity: 100, card: { kind: 'text', maxModelTokens: 100 } });
  expect(text.asset?.bytes.length).toBeGreaterThan(0);
});

it('refuses a checkpoint of PyTorch with what to do', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const file of ['config.json', 'model.safetensors']) await writeFile(join(directory, file), '{}');
  await expect(open(directory)).rejects.toThrow(/^that directory holds a checkpoint of PyTorch.*tools\/export/);
});
