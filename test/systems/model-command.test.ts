import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rename, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { convertTo2022Layout } from '@darkroom/testing';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { FakeHub } from '../../apps/model/src/testing/fake-hub.ts';
import { startTextRepo, startTinyRepo } from '../../apps/model/src/testing/tiny-repo.ts';

const program = resolve(import.meta.dirname, '../../apps/model/dist/main.js');
const unet = 'unet/model_int8.onnx';

let hub: FakeHub;
let directory: string;
beforeEach(async () => {
  hub = await startTinyRepo();
  directory = await mkdtemp(join(tmpdir(), 'darkroom-model-command-'));
  await mkdir(join(directory, 'models'));
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

interface Running {
  child: ChildProcess;
  ended: Promise<{ code: number | null; output: string; errors: string }>;
}

function start(words: string[], environment: Record<string, string> = {}): Running {
  const env = { PATH: process.env['PATH'], HF_ENDPOINT: hub.endpoint, ...environment };
  const child = spawn(process.execPath, [program, ...words], { cwd: directory, env });
  const text = { output: '', errors: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.output += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.errors += chunk));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...text }));
  return { child, ended };
}

const run = (words: string[], environment?: Record<string, string>) => start(words, environment).ended;

/** Returns how many bytes of the UNet have been downloaded so far. */
async function partBytes(): Promise<number> {
  const folder = join(directory, 'models/.tiny_model.partial/unet');
  const part = (await readdir(folder).catch(() => [])).find((name) => /^model.*\.part$/.test(name));
  return part === undefined ? 0 : (await stat(join(folder, part))).size;
}

it('pulls, lists and checks an image model', async () => {
  hub.token = 'hf_secret';
  const pulled = await run(['pull', hub.repo, '--dtype', 'int8'], { HF_TOKEN: 'hf_secret' });
  expect(pulled).toMatchObject({ code: 0, errors: '' });
  expect(pulled.output).toContain('unet/model_int8.onnx (10.1 MB)\n');
  expect(pulled.output).toContain('downloaded to models/tiny_model\n');

  const { output: list } = await run(['list']);
  expect(list.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['id', 'kind', 'mode', 'family', 'dtypes', 'on disk', 'from'],
    ['tiny_model', 'image', 'diffusion', 'OnnxStableDiffusionPipeline', 'int8', '13.1 MB', `${hub.repo} aaaaaaa`],
    [''],
  ]);

  const checked = await run(['check', 'models/tiny_model']);
  expect(checked).toMatchObject({ code: 0, errors: '' });
  for (const line of [
    /^family +OnnxStableDiffusionPipeline$/m,
    /^sizes +multiples of 32 from 64 to 256, 128x128 by default$/m,
    /^timesteps +one per row: /m,
    /^unet +model_int8.onnx +int8 +9\.1 M +10\.1 MB$/m,
    /^loading .* MB$/m,
    /^encoding prompts .* MB +\d+ MB$/m,
    /^one step, 128x128 .* MB$/m,
    /^vae_decoder +cpu$/m,
    /^ok$/m,
  ])
    expect(checked.output).toMatch(line);
});

it('pulls, lists and checks a text model, and reports a truncated graph', async () => {
  await using texts = await startTextRepo();
  const pulled = await run(['pull', texts.repo, '--dtype', 'int8'], { HF_ENDPOINT: texts.endpoint });
  expect(pulled).toMatchObject({ code: 0, errors: '' });
  const { output: list } = await run(['list']);
  expect(list.split('\n')[1]!.split(/ {2,}/).slice(0, 5)).toEqual([
    'tiny_model',
    'text',
    'autoregressive',
    'llama',
    'int8',
  ]);
  const checked = await run(['check', 'models/tiny_model']);
  expect(checked).toMatchObject({ code: 0, errors: '' });
  for (const line of [
    /^mode +autoregressive$/m,
    /^context +256 tokens, /m,
    /^onnx\/model_int8\.onnx +int8 +2\.5 MB$/m,
    /^reading \d+ tokens .* MB$/m,
    /^wrote +"\w.*"$/m,
    /^speed +[\d.]+ tokens\/s, a row alone$/m,
    /^deterministic +yes: /m,
    /^ok$/m,
  ])
    expect(checked.output).toMatch(line);
  const compared = await run(['compare', 'models/tiny_model']);
  expect(compared).toMatchObject({
    code: 1,
    errors: expect.stringContaining('is a text model, expected an image model') as string,
  });

  await truncate(join(directory, 'models/tiny_model/onnx/model_int8.onnx'), 100_000);
  const { code, errors } = await run(['check', 'models/tiny_model']);
  expect(code).toBe(1);
  expect(errors).toMatch(/^model: onnx\/model_int8\.onnx: is not a whole ONNX file: /);
});

it('reports why a text model is not deterministic in batches', async () => {
  const vectors = resolve(import.meta.dirname, '../../tools/golden/vectors/text');
  await cp(join(vectors, 'plain'), join(directory, 'models/plain'), { recursive: true });
  const { code, output } = await run(['check', 'models/plain']);
  expect(code).toBe(0);
  expect(output).toMatch(/^deterministic +no: the last bits of a row change with the rows that share its steps$/m);
});

it('lists and checks an export of 2022 without config.json, and fp16 weights in a file named model.onnx', async () => {
  const vectors = resolve(import.meta.dirname, '../../tools/golden/vectors');
  const old = join(directory, 'models/old');
  await cp(join(vectors, 'pipelines/stable-diffusion-2/model'), old, { recursive: true });
  convertTo2022Layout(old, { timestep: 'int64' });
  await copyExport('models/halves');
  for (const part of ['text_encoder', 'unet', 'vae_decoder']) {
    await rm(join(directory, `models/halves/${part}/model_int8.onnx`));
    await rename(
      join(directory, `models/halves/${part}/model_fp16.onnx`),
      join(directory, `models/halves/${part}/model.onnx`),
    );
  }

  const { output: list } = await run(['list']);
  expect(list.split('\n').map((line) => line.split(/ {2,}/).slice(0, 5))).toEqual([
    ['id', 'kind', 'mode', 'family', 'dtypes'],
    ['halves', 'image', 'diffusion', 'StableDiffusionPipeline', 'fp16'],
    ['old', 'image', 'diffusion', 'OnnxStableDiffusionPipeline', 'fp32'],
    [''],
  ]);

  const checked = await run(['check', 'models/old']);
  expect(checked).toMatchObject({ code: 0, errors: '' });
  expect(checked.output).toMatch(/^unet +model\.onnx, weights\.pb +fp32 /m);
  expect(checked.output).toMatch(/^timesteps +one per row: /m);
  expect((await run(['check', 'models/halves'])).output).toMatch(/^unet +model\.onnx +fp16 /m);
});

it('fails for a damaged model and names the damaged file', async () => {
  await run(['pull', hub.repo]);
  await truncate(join(directory, 'models/tiny_model', unet), 5_000_000);
  const { code, errors } = await run(['check', 'models/tiny_model']);
  expect(code).toBe(1);
  expect(errors).toMatch(/^model: unet\/model_int8\.onnx: is not a whole ONNX file: it is cut short: .*\n$/);
  await rm(join(directory, 'models/tiny_model/model_index.json'));
  expect((await run(['list'])).output).toBe('no models\ntiny_model cannot be read: model_index.json: is missing\n');
});

it.each([
  ['SIGKILL', null, ''],
  ['SIGINT', 130, 'model: stopped; run a pull again to resume it\n'],
] as const)('resumes an interrupted download after %s', async (signal, code, errors) => {
  hub.failNext(unet, { kind: 'stall', afterBytes: 3_000_000 });
  const { child, ended } = start(['pull', hub.repo]);
  await vi.waitUntil(async () => (await partBytes()) > 1_000_000, { timeout: 30_000 });
  child.kill(signal);
  expect(await ended).toMatchObject({ code, errors });
  expect((await run(['list'])).output).toBe('no models\ntiny_model is incomplete: run the same pull again to resume\n');
  hub.seen.length = 0;
  expect(await run(['pull', hub.repo])).toMatchObject({ code: 0 });
  const ranges = hub.seen.filter(({ server, path }) => server === 'cdn' && path.endsWith(unet));
  expect(ranges).toEqual([expect.objectContaining({ range: expect.stringMatching(/^bytes=[1-9]\d*-/) as string })]);
  expect(await run(['check', 'models/tiny_model'])).toMatchObject({ code: 0 });
});

it('reports the devices that a model does not run on, and fails if no device is left', async () => {
  await run(['pull', hub.repo, '--dtype', 'int8']);
  const { code, output } = await run(['check', 'models/tiny_model'], { DEVICE: 'cuda:0,cpu', LOW_MEMORY: 'true' });
  expect(code).toBe(0);
  for (const part of ['text_encoder', 'unet', 'vae_decoder'])
    expect(output).toMatch(new RegExp(`^${part} +cpu +not on cuda:0: .*Failed to load shared library$`, 'm'));
  const strict = await run(['check', 'models/tiny_model'], { DEVICE: 'cuda:0' });
  expect(strict.code).toBe(1);
  expect(strict.errors).toContain('text_encoder/model_int8.onnx: a model file could not be loaded on cuda:0 (');
});

it.each([
  [['fetch'], 'the command is "fetch", expected pull, list, check or compare'],
  [['compare'], 'expected a directory'],
  [
    ['compare', 'tiny', 'int4'],
    'a dtype is "int4", expected auto, fp32, fp16, int8 or (of text) q4, for single parts as in int8,',
  ],
  [['compare', 'tiny', '--rows', '0'], '--rows is "0", expected a whole number from 1 to 9999'],
  [['pull'], 'expected one argument, not 0'],
  [['pull', '../x'], 'the repository is "../x", expected an id such as owner/name'],
  [
    ['pull', 'a/b', '--dtype', 'int4'],
    '--dtype is "int4", expected auto, fp32, fp16, int8 or (of text) q4, for single parts as in int8,vae_decoder=fp16; the parts are ',
  ],
  [['pull', 'a/b', '--name', 'My Model'], '--name is "My Model", expected 1 to 64 characters of'],
  [['pull', 'a/b', '--force'], "Unknown option '--force'"],
  [['check', 'models/none'], 'there is no directory models/none'],
])('rejects invalid arguments %j', async (words, message) => {
  const { code, errors } = await run(words);
  expect(code).toBe(1);
  expect(errors).toContain(`model: ${message}`);
});

/** Copies a model that tools/export made, without its fp32 files. */
async function copyExport(to = 'tiny'): Promise<void> {
  const root = resolve(import.meta.dirname, '../..');
  await cp(join(root, 'tools/golden/vectors/export/model'), join(directory, to), { recursive: true });
  await cp(join(root, 'models/emoji-sd/tokenizer'), join(directory, to, 'tokenizer'), { recursive: true });
}

it('compares images of several dtypes with those of the first', async () => {
  await copyExport();
  const words = [
    'compare',
    'tiny',
    'fp16',
    'int8',
    'int8,vae_decoder=fp16',
    '--prompts',
    '3',
    '--steps',
    '4',
    '--rows',
    '2',
  ];
  const { code, output, errors } = await run(words);
  expect([code, errors]).toEqual([0, '']);
  const [head, ...rows] = output
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  expect(head).toEqual([
    '3 images on cpu',
    'size',
    'of first',
    'PSNR',
    'lowest',
    'an image',
    'peak memory',
    'batched as alone',
  ]);
  expect(rows.map(([dtypes, size, , mean]) => [dtypes, size, mean?.split(' ')[1] ?? mean])).toEqual([
    ['fp16', '232 kB', 'same'],
    ['int8', '209 kB', 'dB'],
    ['int8,vae_decoder=fp16', '213 kB', 'dB'],
  ]);
  for (const [, , , , lowest] of rows.slice(1)) expect(Number.parseFloat(lowest!)).toBeGreaterThan(35);
  expect(rows.map((row) => row.at(-1))).toEqual(['same bytes', 'same bytes', 'same bytes']);
});

it('compares with fp32 by default, and reports missing fp32 graphs', async () => {
  await copyExport();
  const { code, errors } = await run(['compare', 'tiny']);
  expect(code).toBe(1);
  expect(errors).toMatch(/^model: (?:text_encoder|unet|vae_decoder): has no graph in fp32; .* int8 .* and fp16 .*\n$/u);
});

it('rejects an invalid HF_TOKEN without printing it', async () => {
  const { code, errors } = await run(['pull', 'a/b'], { HF_TOKEN: 'mine' });
  expect(code).toBe(1);
  expect(errors).toContain('HF_TOKEN is invalid (value hidden), expected a token, which begins hf_');
});
