/** Runs the conformance suites on engines in Python, with the `python3` of this machine and no packages. */
import { fileURLToPath } from 'node:url';
import { describeExecutor, type ExecutorSubject } from '../conformance/executor-conformance.ts';
import { describeModule } from '../conformance/describe-module.ts';
import { describeRows, type RowSubject } from '../testing/row-conformance.ts';
import { PythonExecutor } from './python-executor.ts';

const fixture = (name: string): URL => new URL(`./__fixtures__/${name}.py`, import.meta.url);

const create = (name: string): Pick<RowSubject, 'create'> => ({
  create: (onEvents) =>
    new PythonExecutor({
      module: fileURLToPath(fixture(name)),
      model: 'mine',
      python: 'python3',
      checkpointEvery: 2,
      onEvents,
    }),
});

function image(changes: Record<string, unknown>) {
  const size = { width: 16, height: 16, n: 1, numInferenceSteps: 6, seed: 1, previewEvery: 2 };
  return { prompt: 'a cat', ...size, ...changes };
}

const painter: ExecutorSubject & RowSubject = {
  ...create('painter'),
  shortInput: ({ number, outputs }) => image({ seed: number, n: outputs }),
  longInput: image({ width: 64, height: 64, n: 2, numInferenceSteps: 1000 }),
  badInput: { input: image({ prompt: 'nonsense' }), message: 'prompt: makes no sense' },
};

const text = (prompt: string, changes: object = {}) => ({
  params: { prompt },
  n: 1,
  seed: 1,
  maxTokens: 6,
  ...changes,
});

const writer: ExecutorSubject & RowSubject = {
  ...create('writer'),
  shortInput: ({ number, outputs }) => text(`wish ${number}`, { n: outputs }),
  longInput: text('wish', { maxTokens: 4096 }),
  badInput: { input: text('nonsense'), message: 'prompt: makes no sense' },
};

describeExecutor('in Python, with images', painter);
describeRows('in Python, with images', painter);
describeExecutor('in Python, with text', writer);
describeRows('in Python, with text', writer);

describeModule(fixture('runner'), {
  short: (number) => ({ prompt: `${number} apples`, seed: number }),
  long: { prompt: 'apples', num_inference_steps: 1000 },
  bad: { body: { prompt: 'nonsense' }, message: 'prompt: makes no sense' },
});
