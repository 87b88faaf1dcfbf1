/**
 * Measures what the worker adds to the steps of an engine in Python: the example with diffusers on emoji-sd, against a
 * bare loop of the same calls in Python. Needs torch, diffusers and onnx in the Python of TORCH_PYTHON.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PythonExecutor } from '@darkroom/executor';
import { expect, it } from 'vitest';

const root = new URL('..', import.meta.url).pathname;
const python = process.env['TORCH_PYTHON'] ?? 'python3';
const steps = 100;
const side = 128;
const rows = 4;

const bare = `
import sys, time
sys.path[:0] = sys.argv[1:3]
from darkroom_engine import Request
from stable_diffusion import StableDiffusion
engine = StableDiffusion("bare")
wanted = {"prompt": "a fox", "negativePrompt": "", "width": ${side}, "height": ${side}, "numInferenceSteps": ${steps},
          "guidanceScale": 3, "guidanceRescale": 0, "previewEvery": 0}
made = [engine.create_row(Request(index, index, wanted)) for index in range(${rows})]
for _ in range(10):
    engine.step(made)
began = time.perf_counter()
for _ in range(${steps - 20}):
    engine.step(made)
print((time.perf_counter() - began) / ${steps - 20} * 1000)
`;

it('an engine in Python against a bare loop', { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  const pipeline = join(folder, 'emoji-sd');
  const packages = join(root, 'libs/executor/python');
  const environment = { ...process.env, PIPELINE: pipeline, OMP_NUM_THREADS: '1' };
  execFileSync(python, [join(packages, 'tests/save_emoji_sd.py'), pipeline], { stdio: 'ignore' });
  const measureBare = (): number => {
    const words = ['-c', bare, packages, join(packages, 'examples')];
    return Number(
      execFileSync(python, words, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  };
  const times: { bare: number; engine: number }[] = [];
  for (let round = 0; round < 3; round++) times.push({ bare: measureBare(), engine: await measureEngine(environment) });
  console.table(times);
  rmSync(folder, { recursive: true });
  expect(times).toHaveLength(3);
});

/** Returns the mean time between two steps, ms. */
async function measureEngine(environment: NodeJS.ProcessEnv): Promise<number> {
  const at: number[] = [];
  let finish: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const executor = new PythonExecutor({
    module: join(root, 'libs/executor/python/examples/stable_diffusion.py'),
    model: 'bench',
    python,
    environment,
    checkpointEvery: 10,
    onEvents: (events) => {
      for (const { type } of events) {
        if (type === 'stats') at.push(performance.now());
        if (type === 'request-done') finish();
      }
    },
  });
  await executor.start();
  const size = { width: side, height: side, n: rows, numInferenceSteps: steps, seed: 0 };
  const input = { prompt: 'a fox', negativePrompt: '', guidanceScale: 3, guidanceRescale: 0, previewEvery: 0, ...size };
  executor.submit([{ id: 'all', input }]);
  await finished;
  await executor.shutdown();
  return (at[steps - 10]! - at[10]!) / (steps - 20);
}
