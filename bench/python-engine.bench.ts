/**
 * Measures what the worker adds to the steps of an engine in Python: the example with diffusers on emoji-sd, with a
 * checkpoint every 10 steps as by default, and beside it the same steps in a loop. The engine records its steps, so
 * that the time between two steps is measured apart from the model's own time, which varies by more than the worker
 * adds. Needs torch, diffusers and onnx in the Python of TORCH_PYTHON.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PythonExecutor } from '@darkroom/executor';
import { expect, it } from 'vitest';

type Step = readonly [begin: number, end: number];

const root = new URL('..', import.meta.url).pathname;
const python = process.env['TORCH_PYTHON'] ?? 'python3';
const rounds = 5;
const steps = 200;
/** Steps before the measured ones: both programs compile their code while it runs. */
const warmUp = 100;
const rows = 4;
const input = {
  prompt: 'a fox',
  negativePrompt: '',
  width: 128,
  height: 128,
  numInferenceSteps: steps,
  guidanceScale: 3,
  guidanceRescale: 0,
  previewEvery: 0,
  seed: 0,
};

it('an engine in Python against a bare loop', { timeout: 1_200_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  const pipeline = join(folder, 'emoji-sd');
  const environment = { ...process.env, PIPELINE: pipeline, OMP_NUM_THREADS: '1' };
  execFileSync(python, [join(root, 'libs/executor/python/tests/save_emoji_sd.py'), pipeline], { stdio: 'ignore' });
  const times: Record<string, number>[] = [];
  for (let round = 0; round < rounds; round++) {
    const bare = stepBare(environment);
    const engine = await stepInWorker(environment);
    const [model, between] = [mean(engine.map(duration)), gaps(engine)];
    times.push({
      'bare step ms': mean(bare.map(duration)),
      'model ms': model,
      'between ms, mean': mean(between),
      'between ms, median': median(between),
      'overhead %, mean': (mean(between) / model) * 100,
      'overhead %, median': (median(between) / median(engine.map(duration))) * 100,
    });
  }
  console.table(times);
  rmSync(folder, { recursive: true });
  expect(times).toHaveLength(rounds);
});

const duration = ([begin, end]: Step): number => (end - begin) * 1000;
const gaps = (times: readonly Step[]): number[] => times.slice(1).map(([begin], at) => (begin - times[at]![1]) * 1000);
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

function stepBare(environment: NodeJS.ProcessEnv): Step[] {
  const program =
    'import json, sys; sys.path.insert(0, sys.argv[1]); from timed_engine import run_without_worker;' +
    'print(json.dumps(run_without_worker(*json.loads(sys.argv[2]))))';
  const words = ['-c', program, join(root, 'bench'), JSON.stringify([rows, steps, input])];
  const output = execFileSync(python, words, {
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return (JSON.parse(output) as Step[]).slice(warmUp);
}

async function stepInWorker(environment: NodeJS.ProcessEnv): Promise<Step[]> {
  let finish: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const executor = new PythonExecutor({
    module: join(root, 'bench/timed_engine.py'),
    model: 'bench',
    python,
    environment,
    checkpointEvery: 10,
    onEvents: (events) => {
      if (events.some(({ type }) => type === 'request-done')) finish();
    },
  });
  await executor.start();
  executor.submit([{ id: 'all', input: { ...input, n: rows } }]);
  await finished;
  const times = (await executor.rpc('times', {})) as Step[];
  await executor.shutdown();
  return times.slice(warmUp);
}
