import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseDtypeChoice } from '@darkroom/core';
import { readModelDirectory } from '@darkroom/diffusion/model-files';
import { externalizeWeights, layOutAsIn2022 } from '@darkroom/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FakeHub } from '../testing/fake-hub.ts';
import { neededFiles, startTinyRepo } from '../testing/tiny-repo.ts';
import { Progress } from './progress.ts';
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
    progress: new Progress({ write: (text) => lines.push(text), isTerminal: false }),
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

/** Takes the weights out of the UNet's file. @returns what is to be `weights.pb` beside it. */
async function putWeightsOutside(): Promise<Buffer> {
  const scratch = join(models, 'scratch');
  await mkdir(scratch);
  await writeFile(join(scratch, 'model.onnx'), hub.files.get(unet)!.content);
  externalizeWeights(join(scratch, 'model.onnx'), 'weights.pb');
  hub.put(unet, await readFile(join(scratch, 'model.onnx')), true);
  return readFile(join(scratch, 'weights.pb'));
}

/** A hub with one. @returns its directory, and what a download brings of it. */
async function putExportOf2022(): Promise<{ tiny: string; files: string[] }> {
  const tiny = join(models, 'scratch');
  await cp(join(vectors, 'stable-diffusion-2/model'), tiny, { recursive: true });
  layOutAsIn2022(tiny, { timestep: 'float' });
  hub.files.clear();
  const files = await filesIn('scratch');
  for (const file of files) hub.put(file, await readFile(join(tiny, file)), /\.(?:onnx|pb)$/.test(file));
  hub.put('safety_checker/model.onnx', 'of no use here', true);
  return { tiny, files };
}

const rangesOf = (file: string) =>
  hub.seen.filter(({ server, path }) => server === 'cdn' && path.endsWith(file)).map(({ range }) => range);

describe('pulling a model', () => {
  it('brings what its pipeline needs and nothing else', async () => {
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

  it('does nothing when the same is there, and refuses to mix two', async () => {
    await pull();
    hub.seen.length = 0;
    expect(await pull()).toMatchObject({ isNew: false });
    expect(hub.downloads).toEqual([]);
    hub.commit = 'b'.repeat(40);
    await expect(pull()).rejects.toThrow(
      /tiny_model is there already, from somebody\/Tiny_Model \(auto, commit aaaaaaa\): remove it, or give another --name/,
    );
    expect(await pull({ name: 'second' })).toMatchObject({ directory: join(models, 'second') });
  });

  it('shows its token to the hub, and to nobody whom the hub sends it to', async () => {
    hub.token = 'hf_secret';
    await pull({ token: 'hf_secret' });
    const authorizations = (server: string) =>
      new Set(hub.seen.filter((request) => request.server === server).map(({ authorization }) => authorization));
    expect(authorizations('hub')).toEqual(new Set(['Bearer hf_secret']));
    expect(authorizations('cdn')).toEqual(new Set([undefined]));
  });

  it('fetches the weights that a graph has outside', async () => {
    const weights = await putWeightsOutside();
    await expect(pull()).rejects.toThrow(
      'unet/model_int8.onnx has its weights in unet/weights.pb, which the repository does not have.',
    );
    hub.put('unet/weights.pb', weights, true);
    await pull();
    await expectWhole('tiny_model', [...neededFiles, 'unet/weights.pb']);
  });

  it('does not fetch weights for a graph that has lost its config.json', async () => {
    const weights = await putWeightsOutside();
    hub.put('unet/weights.pb', weights, true);
    hub.files.delete('unet/config.json');
    await expect(pull()).rejects.toThrow(/^It cannot run here: unet\/config\.json: is missing/);
    expect(rangesOf('unet/weights.pb')).toEqual([]);
  });

  it('brings an export of 2022, which has no config.json', async () => {
    const { tiny, files } = await putExportOf2022();
    await pull();
    await expectWhole('tiny_model', files);
    expect((await readModelDirectory(join(models, 'tiny_model'))).latents).toEqual(
      (await readModelDirectory(tiny)).latents,
    );
  });

  it('does not fetch the weights of one whose graphs do not say what they are', async () => {
    await putExportOf2022();
    hub.put('unet/model.onnx', hub.files.get('vae_decoder/model.onnx')!.content, true);
    await expect(pull()).rejects.toThrow(
      /^It cannot run here: unet\/model\.onnx: has neither a config\.json beside it nor/,
    );
    expect(rangesOf('unet/weights.pb')).toEqual([]);
  });

  it('takes one dtype of each graph, by the names of its files', async () => {
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
  it('is continued where it broke', async () => {
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

  it('is given up after some failures in a row, and continued by the next run', async () => {
    for (let at = 0; at < 7; at++) hub.failNext(unet, { kind: 'break', afterBytes: at === 0 ? 4_000_000 : 0 });
    await expect(pull()).rejects.toThrow(/^the connection broke \(/);
    expect(await readdir(models)).toEqual(['.tiny_model.partial']);
    hub.seen.length = 0;
    await pull();
    await expectWhole();
    expect(rangesOf(unet)).toEqual([expect.stringMatching(/^bytes=[1-9]\d*-10071870$/)]);
    expect(rangesOf('text_encoder/model_int8.onnx')).toEqual([]);
  });

  it('that is silent counts as broken', async () => {
    hub.failNext(unet, { kind: 'stall', afterBytes: 1_000_000 });
    await pull({ stallMs: 1000 });
    await expectWhole();
    expect(lines).toContain('nothing came for 1 s; trying again in 0.0 s\n');
  });

  it('starts again where the server cannot continue', async () => {
    hub.failNext(unet, { kind: 'break', afterBytes: 3_000_000 });
    hub.failNext(unet, { kind: 'ignore range' });
    await pull();
    await expectWhole();
    expect(rangesOf(unet)).toEqual([undefined, expect.stringMatching(/^bytes=/), undefined]);
  });

  it('is waited out when the hub is busy or broken', async () => {
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

  it('leaves nothing that is taken for a model when it is stopped', async () => {
    const stop = new AbortController();
    hub.failNext(unet, { kind: 'stall', afterBytes: 1_000_000 });
    let draws = 0;
    let nowMs = 0;
    const pulling = pull({
      signal: stop.signal,
      progress: new Progress({
        isTerminal: true,
        // Drawn each time, first before anything of the file has come.
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

describe('a download that is not what it should be', () => {
  it.each([unet, 'tokenizer/vocab.json'])('is deleted: %s', async (file) => {
    hub.failNext(file, { kind: 'other bytes' });
    await expect(pull()).rejects.toThrow(`${file} is not what the hub says it is (wrong checksum) and was deleted.`);
    expect((await filesIn('.tiny_model.partial')).filter((path) => path.startsWith(file))).toEqual([]);
    await pull();
    await expectWhole();
  });

  it('is not continued with another commit, and leaves nothing of the first', async () => {
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

  it('is refused when the disk is too small, before anything large comes', async () => {
    await expect(pull({ freeBytes: async () => 105_000_000 })).rejects.toThrow(
      /has 105 MB free, and 113 MB are needed, 100 MB of them to spare/,
    );
    expect(hub.downloads).toEqual([`${hub.commit}/model_index.json`]);
  });
});

describe('a repository that cannot be had', () => {
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
      /is for the pipeline "FluxPipeline"; these run here: StableDiffusionPipeline, /,
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
      /^It cannot run here: tokenizer\/vocab\.json: has ids up to 1447/,
    ],
  ])('says so when it %s', async (_what, change, options, message) => {
    change();
    await expect(pull(options)).rejects.toThrow(message);
    expect((await readdir(models)).filter((name) => !name.startsWith('.'))).toEqual([]);
  });

  it('is given up when nobody answers', async () => {
    await hub[Symbol.asyncDispose]();
    await expect(pull()).rejects.toThrow(/^no answer \(.*ECONNREFUSED/);
    expect(lines).toHaveLength(6);
  });
});
