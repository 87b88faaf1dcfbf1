import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadOnnxSession } from './onnx-session.ts';
import { toRuntimeError } from './runtime-error.ts';

const decoderFile = resolve(import.meta.dirname, '../../../models/emoji-sd/vae_decoder/model_int8.onnx');

describe('an ONNX session', () => {
  it('says what the graph takes and gives, and runs it', async () => {
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

it('reports nothing to anybody, and leaves nothing at home', () => {
  const home = mkdtempSync(join(tmpdir(), 'darkroom-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const runtime = resolve(import.meta.dirname, '../dist/index.js');
  const program = `const { loadOnnxSession } = await import(${JSON.stringify(runtime)});
    await (await loadOnnxSession({ file: ${JSON.stringify(decoderFile)} })).dispose();`;
  // Of our environment nothing else: in CI it is silent of itself.
  const env = { HOME: home, PATH: process.env['PATH'] };
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { env, encoding: 'utf8' });
  expect([child.status, child.stderr]).toEqual([0, '']);
  expect(readdirSync(home)).toEqual([]);
});

const codeOf = (text: string) => toRuntimeError(new Error(text), 'op', 'it failed').code;

it('tells running out of memory from other failures', () => {
  expect(codeOf('BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer')).toBe('out_of_memory');
  expect(codeOf('CUDA failure 2: out of memory ; GPU=0')).toBe('out_of_memory');
  expect(codeOf('Invalid rank for input')).toBe('engine_failed');
});
