/** Runs the conformance suites on the built-in engine's executors. They run built code: `npm run build` first. */
import { resolve } from 'node:path';
import { loadPipeline } from '@darkroom/diffusion';
import { type WriterInput, WriterPipeline } from './writer-pipeline.ts';
import { InProcessExecutor } from './in-process-executor.ts';
import { ProcessExecutor } from '../process/process-executor.ts';
import { describeExecutor, type ExecutorSubject } from '../conformance/executor-conformance.ts';
import { describeRows, type RowSubject } from './row-conformance.ts';

const model = { directory: resolve(import.meta.dirname, '../../../../models/emoji-sd'), threads: 1 };
const limits = { maxSlots: 3, checkpointEvery: 2 };

function image(changes: Record<string, unknown>) {
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 6, guidanceScale: 3, scheduler: 'dpmpp_2m' };
  const file = { outputFormat: 'png', outputCompression: 100, previewEvery: 2 };
  return { prompt: 'a cat on a blue background', negativePrompt: '', seed: 1, ...size, ...file, ...changes };
}

const images = {
  shortInput: ({ number, outputs }) => image({ seed: number, n: outputs }),
  longInput: image({ width: 128, height: 128, n: 2, numInferenceSteps: 200 }),
  badInput: { input: image({ width: 100 }), message: 'width must be a multiple of 32' },
} satisfies Partial<ExecutorSubject>;

const inProcess: ExecutorSubject & RowSubject = {
  ...images,
  create: (onEvents) => new InProcessExecutor({ ...limits, onEvents, loadPipeline: () => loadPipeline(model) }),
  canBeKilled: false,
};
const process: ExecutorSubject & RowSubject = {
  ...images,
  create: (onEvents) => new ProcessExecutor({ ...limits, onEvents, model }),
};

const writerInput = (input: Partial<WriterInput>): WriterInput => ({ prompt: 'a wish', slots: 1, ...input });
const writer: ExecutorSubject & RowSubject = {
  create: (onEvents) =>
    new InProcessExecutor({ ...limits, onEvents, loadPipeline: () => Promise.resolve(new WriterPipeline()) }),
  shortInput: ({ number, outputs }) => writerInput({ prompt: `wish ${number}`, outputs }),
  longInput: writerInput({ max: Infinity }),
  badInput: { input: writerInput({ prompt: '' }), message: 'prompt: is empty' },
  canBeKilled: false,
};
const blockWriter: typeof writer = {
  ...writer,
  shortInput: ({ number, outputs }) => writerInput({ prompt: `wish ${number}`, mode: 'blocks', outputs }),
};

describeExecutor('in process, with images', inProcess);
describeRows('in process, with images', inProcess);
describeExecutor('in a process, with images', process);
describeRows('in a process, with images', process);
describeExecutor('in process, with text', writer);
describeRows('in process, with text', writer);
describeExecutor('in process, with text in blocks', blockWriter);
