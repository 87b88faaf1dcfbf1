import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseDtypeChoice } from '@darkroom/core';
import { readModelDirectory } from '@darkroom/diffusion/model-files';
import { externalizeWeights, convertTo2022Layout } from '@darkroom/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FakeHub } from '../testing/fake-hub.ts';
import { neededFiles, startTinyRepo } from '../testing/tiny-repo.ts';
import { DownloadProgress } from './progress.ts';
import { pullModel, type PullModelOptions } from './pull-model.ts';

const unet = 'unet/model_int8.onnx';
const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');

let hub: FakeHub;
let models: string;
let lines: string[];
beforeEach(async () => {
  hub = await startTinyRepo();
  models = await mkdtemp(join(tmpdir(), 'darkroom-pull-'));
  lines = [];
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(models, { recursive: true });
});

function pull(options: Partial<PullModelOptions> = {}) {
  return pullModel({
    endpoint: hub.endpoint,
    token: undefined,
    repo: hub.repo,
    revision: 'main',
    dtypes: parseDtypeChoice('auto')!,
    name: undefined,
    modelsDirectory: models,
    progress: new DownloadProgress({ write: (text) => lines.push(text), isTerminal: false }),
    signal: new AbortController().signal,
    pauseMs: () => 0,
    ...options,
  });
}

async function filesIn(directory: string): Promise<string[]> {
  const entries = await readdir(join(models, directory), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.map((path) => path.slice(join(models, directory).length + 1)).toSorted();
}

async function expectWhole(directory = 'tiny_model', files = neededFiles): Promise<void> {
  expect(await filesIn(directory)).toEqual([...files, 'source.json'].toSorted());
  for (const file of files) {
    const isSame = (await readFile(join(models, directory, file))).equals(hub.files.get(file)!.content);
    expect([file, isSame]).toEqual([file, true]);
  }
  expect((await readdir(models)).filter((name) => name.startsWith('.'))).toEqual([]);
}

/** Moves the weights out of the UNet's file. @returns the content for `weights.pb` beside it. */
async function putWeightsOutside(): Promise<Buffer> {
  const scratch = join(models, 'scratch');
  await mkdir(scratch);
  await writeFile(join(scratch, 'model.onnx'), hub.files.get(unet)!.content);
  externalizeWeights(join(scratch, 'model.onnx'), 'weights.pb');
  hub.put(unet, await readFile(join(scratch, 'model.onnx')), true);
  return readFile(join(scratch, 'weights.pb'));
}

/** Puts an export in the layout of 2022 on the hub. @returns its directory, and the files to be downloaded. */
async function putExportOf2022(): Promise<{ tiny: string; files: string[] }> {
  const tiny = join(models, 'scratch');
  await cp(join(vectors, 'stable-diffusion-2/model'), tiny, { recursive: true });
  convertTo2022Layout(tiny, { timestep: 'float' });
  hub.files.clear();
  const files = await filesIn('scratch');
  for (const file of files) hub.put(file, await readFile(join(tiny, file)), /\.(?:onnx|pb)$/.test(file));
  hub.put('safety_checker/model.onnx', 'of no use here', true);
  return { tiny, files };
}

const rangesOf = (file: string) =>
  hub.seen.filter(({ server, path }) => server === 'cdn' && path.endsWith(file)).map(({ range }) => range);

describe('pulling a model', () => {
  it('downloads what its pipeline needs and nothing else', async () => {
    expect(await pull()).toEqual({ directory: join(models, 'tiny_model'), isNew: true });
    await expectWhole();
    expect(new Set(hub.downloads)).toEqual(new Set(neededFiles.map((file) => `${hub.commit}/${file}`)));
    expect(JSON.parse(await readFile(join(models, 'tiny_model/source.json'), 'utf8'))).toEqual({
      endpoint: hub.endpoint,
      repo: hub.repo,
      revision: 'main',
      commit: hub.commit,
      dtype: 'auto',
    });
    expect(lines).toContain('unet/model_int8.onnx (10.1 MB)\n');
  });

  it('does nothing when the same model exists, and refuses to mix two', async () => {
    await pull();
    hub.seen.length = 0;
    expect(await pull()).toMatchObject({ isNew: false });
    expect(hub.downloads).toEqual([]);
    hub.commit = 'b'.repeat(40);
    await expect(pull()).rejects.toThrow(
      /tiny_model already exists, from somebody\/Tiny_Model \(auto, commit aaaaaaa\): remove it, or set another --name/,
    );
    expect(await pull({ name: 'second' })).toMatchObject({ directory: join(models, 'second') });
  });

  it('sends its token to the hub, and not to servers that the hub redirects to', async () => {
    hub.token = 'hf_secret';
    await pull({ token: 'hf_secret' });
    const authorizations = (server: string) =>
      new Set(hub.seen.filter((request) => request.server === server).map(({ authorization }) => authorization));
    expect(authorizations('hub')).toEqual(new Set(['Bearer hf_secret']));
    expect(authorizations('cdn')).toEqual(new Set([undefined]));
  });

  it('downloads the external weights of a graph', async () => {
    const weights = await putWeightsOutside();
    await expect(pull()).rejects.toThrow(
      'unet/model_int8.onnx has its weights in unet/weights.pb, which the repository does not have.',
    );
    hub.put('unet/weights.pb', weights, true);
    await pull();
    await expectWhole('tiny_model', [...neededFiles, 'unet/weights.pb']);
  });

  it('does not download weights for a graph without a config.json', async () => {
    const weights = await putWeightsOutside();
    hub.put('unet/weights.pb', weights, true);
    hub.files.delete('unet/config.json');
    await expect(pull()).rejects.toThrow(/^The model is not supported: unet\/config\.json: is missing/);
    expect(rangesOf('unet/weights.pb')).toEqual([]);
  });

  it('downloads an export of 2022, which has no config.json', async () => {
    const { tiny, files } = await putExportOf2022();
    await pull();
    await expectWhole('tiny_model', files);
    expect((await readModelDirectory(join(models, 'tiny_model'))).latents).toEqual(
      (await readModelDirectory(tiny)).latents,
    );
  });

  it('does not download the weights of an export of 2022 with unrecognized graphs', async () => {
    await putExportOf2022();
    hub.put('unet/model.onnx', hub.files.get('vae_decoder/model.onnx')!.content, true);
    await expect(pull()).rejects.toThrow(
      /^The model is not supported: unet\/model\.onnx: has neither a config\.json beside it nor/,
    );
    expect(rangesOf('unet/weights.pb')).toEqual([]);
  });

  it('selects one dtype per graph by file name', async () => {
    for (const part of ['text_encoder', 'unet', 'vae_decoder', 'vae_encoder']) {
      hub.put(`${part}/model.onnx`, hub.files.get(`${part}/model_int8.onnx`)!.content, true);
    }
    await pull({ dtypes: parseDtypeChoice('fp32')! });
    await expectWhole(
      'tiny_model',
      neededFiles.map((file) => file.replace('_int8', '')),
    );
    hub.files.delete('vae_decoder/model_int8.onnx');
    await expect(pull({ dtypes: parseDtypeChoice('int8')!, name: 'other' })).rejects.toThrow(
      'somebody/Tiny_Model has no vae_decoder in int8, only in fp32: --dtype int8,vae_decoder=fp32',
    );
    await pull({ dtypes: parseDtypeChoice('int8,vae_decoder=fp32')!, name: 'other' });
    await expectWhole(
      'other',
      neededFiles.map((file) => file.replace('vae_decoder/model_int8', 'vae_decoder/model')),
    );
    const wrong = { dtypes: parseDtypeChoice('int8,transformer=fp32')!, name: 'third' };
    await expect(pull(wrong)).rejects.toThrow(
      /^--dtype names transformer, expected of the parts of .*Pipeline only text/,
    );
  });
});

describe('a broken connection', () => {
  it('is resumed where it broke', async () => {
    hub.failNext(unet, { kind: 'break', afterBytes: 3_000_000 });
    hub.failNext(unet, { kind: 'break', afterBytes: 2_000_000 });
    hub.failNext('vocab.json', { kind: 'break', afterBytes: 100 });
    await pull();
    await expectWhole();
    const [first, ...others] = rangesOf(unet);
    expect(first).toBeUndefined();
    expect(others).toHaveLength(2);
    for (const range of others) expect(range).toMatch(/^bytes=[1-9]\d*-10071870$/);
    expect(lines.filter((line) => line.includes('trying again in'))).toHaveLength(3);
  });

  it('fails after several consecutive failures, and is resumed by the next run', async () => {
    for (let at = 0; at < 7; at++) hub.failNext(unet, { kind: 'break', afterBytes: at === 0 ? 4_000_000 : 0 });
    await expect(pull()).rejects.toThrow(/^the connection broke \(/);
    expect(await readdir(models)).toEqual(['.tiny_model.partial']);
    hub.seen.length = 0;
    await pull();
    await expectWhole();
    expect(rangesOf(unet)).toEqual([expect.stringMatching(/^bytes=[1-9]\d*-10071870$/)]);
    expect(rangesOf('text_encoder/model_int8.onnx')).toEqual([]);
  });

  it('is detected by a stall timeout', async () => {
    hub.failNext(unet, { kind: 'stall', afterBytes: 1_000_000 });
    await pull({ stallMs: 1000 });
    await expectWhole();
    expect(lines).toContain('nothing came for 1 s; trying again in 0.0 s\n');
  });

  it('restarts when the server ignores ranges', async () => {
    hub.failNext(unet, { kind: 'break', afterBytes: 3_000_000 });
    hub.failNext(unet, { kind: 'ignore range' });
    await pull();
    await expectWhole();
    expect(rangesOf(unet)).toEqual([undefined, expect.stringMatching(/^bytes=/), undefined]);
  });

  it('is retried when the hub is busy or failing', async () => {
    hub.failNext('/revision/main', { kind: 'status', status: 503 });
    hub.failNext(`/tree/${hub.commit}`, { kind: 'status', status: 429, headers: { 'retry-after': '0' } });
    hub.failNext(unet, { kind: 'status', status: 500 });
    await pull();
    await expectWhole();
    expect(lines.filter((line) => line.includes('the hub answers')).map((line) => line.slice(0, 19))).toEqual([
      'the hub answers 503',
      'the hub answers 429',
      'the hub answers 500',
    ]);
  });

  it('leaves no directory that looks like a model when it is stopped', async () => {
    const stop = new AbortController();
    hub.failNext(unet, { kind: 'stall', afterBytes: 1_000_000 });
    let draws = 0;
    let nowMs = 0;
    const pulling = pull({
      signal: stop.signal,
      progress: new DownloadProgress({
        isTerminal: true,
        // Redraws every time; the first redraw is before any bytes of the file.
        nowMs: () => (nowMs += 1000),
        write: (text) => void (text.includes(unet) && draws++ > 0 && stop.abort()),
      }),
    });
    await expect(pulling).rejects.toThrow('aborted');
    expect(await readdir(models)).toEqual(['.tiny_model.partial']);
    await pull();
    await expectWhole();
  });
});

describe('a download with wrong content', () => {
  it.each([unet, 'tokenizer/vocab.json'])('is deleted: %s', async (file) => {
    hub.failNext(file, { kind: 'other bytes' });
    await expect(pull()).rejects.toThrow(`${file} does not match the hub's checksum and was deleted.`);
    expect((await filesIn('.tiny_model.partial')).filter((path) => path.startsWith(file))).toEqual([]);
    await pull();
    await expectWhole();
  });

  it('is not resumed with another commit, and leaves no files of the first', async () => {
    for (let at = 0; at < 7; at++) hub.failNext(unet, { kind: 'break', afterBytes: at === 0 ? 4_000_000 : 0 });
    await expect(pull()).rejects.toThrow(/^the connection broke \(/);
    hub.commit = 'b'.repeat(40);
    const changed = Buffer.from(hub.files.get(unet)!.content);
    changed[changed.length - 5_000_000]! ^= 1;
    hub.put(unet, changed, true);
    hub.put('README.md', 'Another one.');
    hub.files.delete('NOTICE.md');
    await pull();
    await expectWhole(
      'tiny_model',
      neededFiles.filter((file) => file !== 'NOTICE.md'),
    );
  });

  it.each(['../outside', 'unet/../../outside', '/etc/outside', 'a\\..\\b', 'C:x', 'unet//x'])(
    'is refused when a file is called %s',
    async (path) => {
      hub.put(path, 'x');
      await expect(pull()).rejects.toThrow(
        `somebody/Tiny_Model has a file that must not be written: ${JSON.stringify(path)}`,
      );
      expect(await readdir(models)).toEqual([]);
    },
  );

  it('is refused when the disk is too small, before large files are downloaded', async () => {
    await expect(pull({ freeBytes: async () => 105_000_000 })).rejects.toThrow(
      /has 105 MB free, expected 113 MB, including a reserve of 100 MB/,
    );
    expect(hub.downloads).toEqual([`${hub.commit}/model_index.json`]);
  });
});

describe('a repository that cannot be downloaded', () => {
  it.each<[what: string, change: () => void, options: Partial<PullModelOptions>, message: RegExp]>([
    [
      'is not there',
      () => {},
      { repo: 'somebody/else' },
      /^There is no somebody\/else at .*, or it is private and HF_TOKEN is not set \(401\)\.$/,
    ],
    ['is private', () => (hub.token = 'hf_a'), { token: 'hf_b' }, /, or HF_TOKEN may not read it \(401\)\.$/],
    [
      'is gated',
      () => (hub.isGated = true),
      {},
      /is gated: its authors want you to accept their conditions at http:.*\/somebody\/Tiny_Model first, and set HF_TOKEN/,
    ],
    ['has no such revision', () => {}, { revision: 'v9' }, /^somebody\/Tiny_Model has no such branch, tag or commit/],
    [
      'is no model that runs here',
      () => hub.files.delete('model_index.json'),
      {},
      /it has no model_index\.json at its top/,
    ],
    [
      'is of another family',
      () => hub.put('model_index.json', '{"_class_name": "FluxPipeline"}'),
      {},
      /has the pipeline "FluxPipeline"; supported are StableDiffusionPipeline, /,
    ],
    [
      'has no ONNX files',
      () => [...hub.files.keys()].forEach((path) => path.endsWith('.onnx') && hub.files.delete(path)),
      {},
      /has no ONNX files\. .*tools\/export makes one/,
    ],
    [
      'has them elsewhere',
      () => hub.files.delete(unet),
      {},
      /has none of model_int8\.onnx, model\.onnx, model_fp16\.onnx in unet\/, as exports by Optimum do\.$/,
    ],
    [
      'has a model that does not fit together',
      () => hub.put('text_encoder/config.json', '{"vocab_size": 5, "max_position_embeddings": 77, "hidden_size": 128}'),
      {},
      /^The model is not supported: tokenizer\/vocab\.json: has ids up to 1447/,
    ],
  ])('reports when it %s', async (_what, change, options, message) => {
    change();
    await expect(pull(options)).rejects.toThrow(message);
    expect((await readdir(models)).filter((name) => !name.startsWith('.'))).toEqual([]);
  });

  it('fails when the hub does not answer', async () => {
    await hub[Symbol.asyncDispose]();
    await expect(pull()).rejects.toThrow(/^no answer \(.*ECONNREFUSED/);
    expect(lines).toHaveLength(6);
  });
});
