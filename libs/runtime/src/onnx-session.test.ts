import { nonEmpty } from '@darkroom/core';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadOnnxSession } from './onnx-session.ts';
import { toRuntimeError } from './runtime-error.ts';

const decoderFile = resolve(import.meta.dirname, '../../../models/emoji-sd/vae_decoder/model_int8.onnx');

describe('an ONNX session', () => {
  it('lists the inputs and outputs of the graph, and runs it', async () => {
    const session = await loadOnnxSession({ file: decoderFile, threads: 1 });
    expect(session.inputs).toMatchObject([{ name: 'latent_sample', type: 'float32', shape: { 1: 4 } }]);
    const feeds = { latent_sample: { data: new Float32Array(4 * 4 * 4), dims: [1, 4, 4, 4] } };
    const { data, dims } = await session.run(feeds, 'sample');
    expect(dims).toEqual([1, 3, 32, 32]);
    expect(data.every((value) => Number.isFinite(value))).toBe(true);
    await session.dispose();
  });

  it('fails with a message that names neither file nor tensor', async () => {
    await expect(loadOnnxSession({ file: '/nowhere/model.onnx' })).rejects.toMatchObject({
      code: 'engine_failed',
      message: 'a model file could not be loaded on cpu',
    });
    const session = await loadOnnxSession({ file: decoderFile, threads: 1 });
    const feeds = { latent_sample: { data: new Float32Array(3), dims: [1, 3, 1, 1] } };
    await expect(session.run(feeds, 'sample')).rejects.toMatchObject({ code: 'engine_failed', op: 'runtime.run' });
    await session.dispose();
  });
});

// Only the GPU image has CUDA's libraries, so CUDA is a missing device here.
describe('the devices of an ONNX session', () => {
  it('are tried in order, with the reason why each one failed', async () => {
    const session = await loadOnnxSession({ file: decoderFile, devices: ['cuda:0', 'cpu'], threads: 1 });
    expect(session.device).toBe('cpu');
    expect(session.refusals).toEqual([
      { device: 'cuda:0', reason: expect.stringContaining('shared library') as string },
    ]);
    await session.dispose();
    const first = await loadOnnxSession({ file: decoderFile, devices: ['cpu', 'cuda:0'], threads: 1 });
    expect([first.device, first.refusals]).toEqual(['cpu', []]);
    await first.dispose();
  });

  it.each([
    [{ devices: ['cuda:1'] }, 'a model file could not be loaded on cuda:1', /^Ort.*shared library/],
    [
      { devices: ['cuda:1', 'cuda'] },
      'a model file could not be loaded on cuda:1, cuda',
      /^cuda:1: .*; cuda: .*library/,
    ],
  ] as const)('cause an error if %j are missing', async (options, message, cause) => {
    await expect(loadOnnxSession({ file: decoderFile, ...options })).rejects.toMatchObject({
      code: 'engine_failed',
      message,
      cause: { message: expect.stringMatching(cause) as string },
    });
  });
});

const floats = (...dims: number[]) => ({ data: new Float32Array(dims.reduce((all, side) => all * side)), dims });

it.each([
  ['group-query', 'a copy'],
  ['group-query-uncopied', 'the buffer itself'],
])('returns an output of %s with a given buffer as %s', async (name, returned) => {
  const file = resolve(import.meta.dirname, `../../../tools/golden/vectors/text/${name}/onnx/model.onnx`);
  const session = await loadOnnxSession({ file, threads: 1 });
  const layers = ['0.key', '0.value', '1.key', '1.value'];
  const caches = layers.map(() => floats(1, 2, 16, 16));
  const into = new Map([
    ['logits', floats(1, 1, 64)],
    ...layers.map((layer, at) => [`present.${layer}`, caches[at]!] as const),
  ]);
  const feeds = {
    input_ids: { data: BigInt64Array.of(3n, 4n), dims: [1, 2] },
    attention_mask: { data: BigInt64Array.of(1n, 1n), dims: [1, 2] },
    num_logits_to_keep: { data: BigInt64Array.of(1n), dims: [] },
    ...Object.fromEntries(layers.map((layer, at) => [`past_key_values.${layer}`, caches[at]!])),
  };
  const names = nonEmpty([...into.keys()]);
  const results = await session.runForAll(feeds, names, into);
  const buffers = [...into.values()];
  expect(results.map(({ data }) => data)).toEqual(buffers.map(({ data }) => data));
  expect(results[0].data.some((logit) => logit !== 0)).toBe(true);
  expect(results.every(({ data }, at) => data === buffers[at]!.data)).toBe(returned === 'the buffer itself');
  // Errors of the graph itself are not suppressed.
  const wrong = { ...feeds, input_ids: { data: BigInt64Array.of(999n, 4n), dims: [1, 2] } };
  await expect(session.runForAll(wrong, names, into)).rejects.toMatchObject({ code: 'engine_failed' });
  await session.dispose();
});

// Debian's Chromium contains Vulkan with a software driver. It is slow, so the test uses few latents.
const vulkan = '/usr/lib/chromium';
const driver = join(vulkan, 'vk_swiftshader_icd.json');

it('computes the same on webgpu as on the CPU, and counts the nodes left on the CPU', ({ skip }) => {
  skip(!existsSync(driver), `there is no ${driver}, which comes with Debian's package chromium`);
  const runtime = resolve(import.meta.dirname, '../dist/index.js');
  const program = `const { loadOnnxSession } = await import(${JSON.stringify(runtime)});
    const feeds = { latent_sample: { data: new Float32Array(16).fill(0.5), dims: [1, 4, 2, 2] } };
    const outcomes = [];
    for (const device of ['webgpu', 'cpu']) {
      const options = { file: ${JSON.stringify(decoderFile)}, devices: [device], countsNodes: true };
      const session = await loadOnnxSession(options);
      const { data } = await session.run(feeds, 'sample');
      outcomes.push({ data: [...data], device: session.device, nodes: await session.countNodes() });
      await session.dispose();
    }
    console.log(JSON.stringify(outcomes));`;
  // Vulkan drivers are selected by the environment of the process only.
  const drivers = { LD_LIBRARY_PATH: vulkan, VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver };
  const env = { PATH: process.env['PATH'], HOME: '/nowhere', ...drivers };
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { env, encoding: 'utf8' });
  expect(child).toMatchObject({ status: 0 });
  type Outcome = { data: number[]; device: string; nodes?: Record<string, number> };
  const [webgpu, cpu] = JSON.parse(child.stdout) as [Outcome, Outcome];
  expect([webgpu.device, cpu.device, cpu.nodes]).toEqual(['webgpu', 'cpu', undefined]);
  expect(Math.max(...cpu.data.map((value, at) => Math.abs(value - webgpu.data[at]!)))).toBeLessThan(1e-4);
  // Shapes are computed on the CPU, all else on the GPU.
  expect(webgpu.nodes!['webgpu']).toBeGreaterThan(100);
  expect(webgpu.nodes!['cpu']).toBeLessThan(30);
});

it('sends no telemetry, and writes nothing to the home directory', () => {
  const home = mkdtempSync(join(tmpdir(), 'darkroom-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const runtime = resolve(import.meta.dirname, '../dist/index.js');
  const program = `const { loadOnnxSession } = await import(${JSON.stringify(runtime)});
    await (await loadOnnxSession({ file: ${JSON.stringify(decoderFile)} })).dispose();`;
  // Pass no other variables: telemetry is off in CI by default.
  const env = { HOME: home, PATH: process.env['PATH'] };
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { env, encoding: 'utf8' });
  expect([child.status, child.stderr]).toEqual([0, '']);
  expect(readdirSync(home)).toEqual([]);
});

const codeOf = (text: string) => toRuntimeError(new Error(text), 'op', 'it failed').code;

it('distinguishes out-of-memory errors from others', () => {
  expect(codeOf('BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer')).toBe('out_of_memory');
  expect(codeOf('CUDA failure 2: out of memory ; GPU=0')).toBe('out_of_memory');
  expect(codeOf('Invalid rank for input')).toBe('engine_failed');
});
