// First, because the import after it already reads what it sets.
// oxlint-disable-next-line import/no-unassigned-import
import './no-telemetry.ts';
import { existsSync, readdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createNodeCounter } from './node-counter.ts';

const decoder = resolve(import.meta.dirname, '../../../models/emoji-sd/vae_decoder/model_int8.onnx');
let temporary: string;

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'darkroom-counter-'));
  vi.stubEnv('TMPDIR', temporary);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(temporary, { recursive: true, force: true });
});

it('counts the nodes of a session that is there, and leaves no file, not even if the process is killed', async () => {
  const counter = createNodeCounter()!;
  const session = await InferenceSession.create(decoder, { ...counter.sessionOptions, logSeverityLevel: 3 });
  counter.open();
  expect(readdirSync(temporary)).toEqual([]);
  await session.run({ latent_sample: new Tensor(new Float32Array(16), [1, 4, 2, 2]) });
  session.endProfiling();
  const { cpu, ...others } = counter.read()!;
  expect(cpu).toBeGreaterThan(100);
  expect(others).toEqual({});
  await session.release();
  expect(readdirSync(temporary)).toEqual([]);
});

it('leaves nothing of a session that was not made', () => {
  const counter = createNodeCounter()!;
  expect(readdirSync(temporary)).toHaveLength(1);
  counter.drop();
  expect(readdirSync(temporary)).toEqual([]);
});

it('counts nothing of a profile that is cut short, and fails nobody', async () => {
  const counter = createNodeCounter()!;
  const session = await InferenceSession.create(decoder, { ...counter.sessionOptions, logSeverityLevel: 3 });
  counter.open();
  // Before it is written.
  expect(counter.read()).toBeUndefined();
  await session.release();
});

it('is none where no file can be written', () => {
  vi.stubEnv('TMPDIR', join(temporary, 'missing'));
  expect(createNodeCounter()).toBeUndefined();
  expect(existsSync(join(temporary, 'missing'))).toBe(false);
});
