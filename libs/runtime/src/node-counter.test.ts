// Import first: the next import reads the variable that this sets.
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

it('counts the nodes of a session, and leaves no file even if the process is killed', async () => {
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

it('leaves no file for a session that was not created', () => {
  const counter = createNodeCounter()!;
  expect(readdirSync(temporary)).toHaveLength(1);
  counter.drop();
  expect(readdirSync(temporary)).toEqual([]);
});

it('returns no counts for an incomplete profile, without an error', async () => {
  const counter = createNodeCounter()!;
  const session = await InferenceSession.create(decoder, { ...counter.sessionOptions, logSeverityLevel: 3 });
  counter.open();
  // The profile is not written yet.
  expect(counter.read()).toBeUndefined();
  await session.release();
});

it('is undefined if no file can be written', () => {
  vi.stubEnv('TMPDIR', join(temporary, 'missing'));
  expect(createNodeCounter()).toBeUndefined();
  expect(existsSync(join(temporary, 'missing'))).toBe(false);
});
