/**
 * Tests the examples with diffusers: images of emoji-sd by torch against those of the built-in engine. Skipped unless
 * torch, diffusers and onnx are installed in the Python that TORCH_PYTHON names (default: python3). CI has none.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { describeExecutor } from '../conformance/executor-conformance.ts';
import { ProcessExecutor } from '../process/process-executor.ts';
import { PythonExecutor } from './python-executor.ts';

const root = resolve(import.meta.dirname, '../../../..');
const python = process.env['TORCH_PYTHON'] ?? 'python3';
const hasTorch = spawnSync(python, ['-c', 'import torch, diffusers, onnx']).status === 0;
const folder = join(mkdtempSync(join(tmpdir(), 'darkroom-diffusers-')), 'emoji-sd');
afterAll(() => rmSync(resolve(folder, '..'), { recursive: true }));

function savePipeline(): void {
  if (existsSync(folder)) return;
  execFileSync(python, [join(root, 'libs/executor/python/tests/save_emoji_sd.py'), folder], { stdio: 'ignore' });
}

/** Returns the pipeline with PNDM, which takes a call more than an image has steps. */
function withPndm(): string {
  const pndm = `${folder}-pndm`;
  cpSync(folder, pndm, { recursive: true });
  for (const name of ['model_index.json', 'scheduler/scheduler_config.json']) {
    const file = join(pndm, name);
    writeFileSync(file, readFileSync(file, 'utf8').replace('DPMSolverMultistepScheduler', 'PNDMScheduler'));
  }
  return pndm;
}

function pythonExecutor(example: string, log: Pick<EventLog, 'listener'>, pipeline = folder): PythonExecutor {
  return new PythonExecutor({
    module: join(root, `libs/executor/python/examples/${example}.py`),
    model: 'emoji',
    python,
    checkpointEvery: 3,
    environment: { ...process.env, PIPELINE: pipeline, OMP_NUM_THREADS: '1' },
    onEvents: log.listener,
  });
}

function image(changes: Record<string, unknown> = {}) {
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 8, guidanceScale: 3, guidanceRescale: 0 };
  const file = { outputFormat: 'png', outputCompression: 100, previewEvery: 0 };
  const scheduler = 'dpmpp_2m';
  return {
    prompt: 'a red apple on a white background',
    negativePrompt: '',
    seed: 1,
    scheduler,
    ...size,
    ...file,
    ...changes,
  };
}

/** Different steps, guidance (one without), seeds and prompts. */
const inputs = {
  apple: image(),
  fox: image({ prompt: 'a fox on a blue background', seed: 2, numInferenceSteps: 11, guidanceScale: 5 }),
  car: image({ prompt: 'a car', seed: 3, numInferenceSteps: 6, guidanceScale: 1 }),
};

function differences(first: Buffer, second: Buffer): number {
  expect(second).toHaveLength(first.length);
  return first.reduce((max, byte, at) => Math.max(max, Math.abs(byte - second[at]!)), 0);
}

describe.runIf(hasTorch)('a scheduler with more calls than steps', { timeout: 300_000 }, () => {
  beforeAll(savePipeline);

  it.each(['stable_diffusion', 'any_pipeline'])('reports each step once in %s', async (example) => {
    const log = new EventLog();
    const executor = pythonExecutor(example, log, withPndm());
    onTestFinished(() => executor.shutdown());
    await executor.start();
    executor.submit([{ id: 'apple', input: image({ previewEvery: 2 }) }]);
    expect(await log.end('apple')).toMatchObject({ type: 'request-done' });
    const progress = log.of('progress');
    expect(progress.map(({ done }) => done)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const previews = progress.filter(({ preview }) => preview !== undefined).map(({ done }) => done);
    expect(previews).toEqual(example === 'stable_diffusion' ? [2, 4, 6] : []);
  });
});

describe.runIf(hasTorch)('with torch', { timeout: 300_000 }, () => {
  const images = new Map<string, Buffer>();
  beforeAll(async () => {
    savePipeline();
    const log = new EventLog();
    const model = { directory: join(root, 'models/emoji-sd'), threads: 1 };
    const executor = new ProcessExecutor({ maxSlots: 3, onEvents: log.listener, model });
    await executor.start();
    executor.submit(Object.entries(inputs).map(([id, input]) => ({ id, input })));
    for (const id of Object.keys(inputs)) {
      await log.end(id);
      images.set(id, log.outputs(id).get(0)!);
    }
    await executor.shutdown();
  });

  // Only rows may differ in steps and guidance within a call.
  describe.each([
    ['stable_diffusion', 3],
    ['any_pipeline', 1],
  ])('the example %s', (example, rowsPerCall) => {
    const log = new EventLog();
    const executor = pythonExecutor(example, log);
    beforeAll(() => executor.start());
    afterAll(() => executor.shutdown());
    beforeEach(() => {
      log.events = [];
    });

    it('draws the images of the built-in engine, to 1/255', async () => {
      executor.submit(Object.entries(inputs).map(([id, input]) => ({ id, input })));
      for (const [id, expected] of images) {
        expect(await log.end(id)).toMatchObject({ type: 'request-done' });
        expect(differences(log.outputs(id).get(0)!, expected)).toBeLessThanOrEqual(1);
      }
      expect(Math.max(...log.of('stats').map(({ rows }) => rows))).toBe(rowsPerCall);
    });

    it('draws the images of one request in one call', async () => {
      executor.submit([{ id: 'two', input: image({ n: 2 }) }]);
      await log.end('two');
      expect(differences(log.outputs('two').get(0)!, images.get('apple')!)).toBeLessThanOrEqual(1);
      expect(new Set(log.of('stats').map(({ rows }) => rows))).toEqual(new Set([2]));
    });
  });

  describe('rows', () => {
    const log = new EventLog();
    const executor = pythonExecutor('stable_diffusion', log);
    beforeAll(() => executor.start());
    afterAll(() => executor.shutdown());

    it('continue from each checkpoint to the same bytes, and send previews', async () => {
      executor.submit([{ id: 'whole', input: image({ previewEvery: 2 }) }]);
      await log.end('whole');
      const [whole, checkpoints] = [log.outputs('whole').get(0)!, log.of('checkpoint')];
      expect(log.of('progress').filter(({ preview }) => preview?.data.length === 8 * 8 * 3)).toHaveLength(3);
      expect(checkpoints.map(({ checkpoint }) => checkpoint.done)).toEqual([3, 6]);
      for (const { checkpoint } of checkpoints) {
        const id = `from ${checkpoint.done}`;
        executor.submit([{ id, input: image(), checkpoints: new Map([[0, structuredClone(checkpoint)]]) }]);
        await log.end(id);
        expect(log.of('progress', id)[0]!.done).toBe(checkpoint.done + 1);
        expect(log.outputs(id).get(0)).toEqual(whole);
      }
    });
  });

  describe('conformance', () => {
    beforeAll(savePipeline);
    describeExecutor('of the example stable_diffusion', {
      create: (onEvents) => pythonExecutor('stable_diffusion', { listener: onEvents }),
      shortInput: ({ number, outputs }) => image({ seed: number, n: outputs, numInferenceSteps: 3 }),
      longInput: image({ width: 128, height: 128, numInferenceSteps: 200 }),
      badInput: {
        input: image({ guidanceRescale: 0.5 }),
        message: 'guidance_rescale: is not supported by this model, leave it out',
      },
      // torch may round differently beside other rows.
      isExact: false,
    });
  });
});
