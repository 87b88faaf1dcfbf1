/** Pulls a text model from a fake hub. pull-model.test.ts tests the download itself. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDtypeChoice } from '@darkroom/core';
import { externalizeWeights } from '@darkroom/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FakeHub } from '../testing/fake-hub.ts';
import { neededTextFiles, startTextRepo } from '../testing/tiny-repo.ts';
import { DownloadProgress } from './progress.ts';
import { pullModel } from './pull-model.ts';

const graph = 'onnx/model_int8.onnx';

let hub: FakeHub;
let models: string;
beforeEach(async () => {
  hub = await startTextRepo();
  models = await mkdtemp(join(tmpdir(), 'darkroom-pull-text-'));
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(models, { recursive: true });
});

const pull = (dtype = 'auto') =>
  pullModel({
    endpoint: hub.endpoint,
    token: undefined,
    repo: hub.repo,
    revision: 'main',
    dtypes: parseDtypeChoice(dtype)!,
    name: undefined,
    modelsDirectory: models,
    progress: new DownloadProgress({ write: () => {}, isTerminal: false }),
    signal: new AbortController().signal,
    pauseMs: () => 0,
  });

/** All downloaded files, relative to the model. */
async function filesOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.map((path) => path.slice(directory.length + 1)).toSorted();
}

const isSame = async (directory: string, file: string) =>
  (await readFile(join(directory, file))).equals(hub.files.get(file)!.content);

describe('pulling a text model', () => {
  it.each([
    ['auto', graph],
    ['int8', graph],
    ['fp32', 'onnx/model.onnx'],
    ['q4', 'onnx/model_q4.onnx'],
    ['fp16', 'onnx/model_fp16.onnx'],
  ])('in %s downloads the configuration, the tokenizer and %s, and nothing else', async (dtype, file) => {
    const { directory } = await pull(dtype);
    const needed = neededTextFiles.map((path) => (path === graph ? file : path));
    expect(await filesOf(directory)).toEqual([...needed, 'source.json'].toSorted());
    for (const path of needed) expect([path, await isSame(directory, path)]).toEqual([path, true]);
    expect(new Set(hub.downloads)).toEqual(new Set(needed.map((path) => `${hub.commit}/${path}`)));
  });

  it('selects the next available dtype, and downloads a separate chat template', async () => {
    hub.files.delete(graph);
    hub.put('chat_template.jinja', '{{ messages[0].content }}');
    const { directory } = await pull();
    expect(await filesOf(directory)).toContain('onnx/model.onnx');
    expect(await filesOf(directory)).toContain('chat_template.jinja');
  });

  it('downloads the external weights of the graph', async () => {
    const scratch = await mkdtemp(join(models, 'scratch-'));
    await writeFile(join(scratch, 'model.onnx'), hub.files.get(graph)!.content);
    externalizeWeights(join(scratch, 'model.onnx'), 'model_int8.onnx_data');
    hub.put(graph, await readFile(join(scratch, 'model.onnx')), true);
    await expect(pull()).rejects.toThrow(
      `${graph} has its weights in ${graph}_data, which the repository does not have.`,
    );
    hub.put(`${graph}_data`, await readFile(join(scratch, 'model_int8.onnx_data')), true);
    hub.put('onnx/model_q4.onnx_data', 'of another', true);
    const { directory } = await pull();
    expect(await isSame(directory, `${graph}_data`)).toBe(true);
    expect(hub.downloads.filter((path) => path.endsWith('_q4.onnx_data'))).toEqual([]);
  });

  it('resumes after a broken connection', async () => {
    hub.failNext(graph, { kind: 'break', afterBytes: 500_000 });
    const { directory } = await pull();
    expect(await isSame(directory, graph)).toBe(true);
    expect(hub.seen.filter(({ path, range }) => path.endsWith(graph) && range !== undefined)).not.toEqual([]);
  });
});

const withoutGraphs = () => [...hub.files.keys()].forEach((path) => path.endsWith('.onnx') && hub.files.delete(path));

describe('a text model that cannot be downloaded', () => {
  it.each<[what: string, dtype: string, change: () => void, message: RegExp]>([
    [
      'is of another family',
      'auto',
      () => hub.put('config.json', '{"model_type": "mamba"}'),
      /^The model is not supported: config\.json: /,
    ],
    [
      'has no graph',
      'auto',
      withoutGraphs,
      /has none of onnx\/model_int8\.onnx, onnx\/model\.onnx, .*tools\/export makes/,
    ],
    [
      'lacks the dtype',
      'q4',
      () => hub.files.delete('onnx/model_q4.onnx'),
      /^somebody\/Tiny_Model has no graph in q4, only in int8 and fp32 and fp16: --dtype int8$/,
    ],
    [
      'has one graph',
      'int8,unet=fp16',
      () => {},
      /^--dtype names unet, expected one dtype: a text model is one graph$/,
    ],
    [
      'has no tokenizer',
      'auto',
      () => hub.files.delete('tokenizer.json'),
      /^The model is not supported: tokenizer\.json: is missing/,
    ],
    [
      'has a graph cut short',
      'auto',
      () => hub.put(graph, hub.files.get(graph)!.content.subarray(0, 100_000), true),
      /model_int8\.onnx of the repository is not a whole ONNX file: /,
    ],
  ])('reports when it %s', async (_what, dtype, change, message) => {
    change();
    await expect(pull(dtype)).rejects.toThrow(message);
    expect((await readdir(models)).filter((name) => !name.startsWith('.'))).toEqual([]);
  });
});
