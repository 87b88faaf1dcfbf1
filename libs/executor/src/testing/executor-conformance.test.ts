/** The suites, on the executors of our own engine. The process executor runs the built engine: `npm run build` first. */
import { resolve } from 'node:path';
import { loadPipeline } from '@darkroom/diffusion';
import { type WriterInput, WriterPipeline } from './writer-pipeline.ts';
import { InProcessExecutor } from './in-process-executor.ts';
import { ProcessExecutor } from '../process/process-executor.ts';
import { describeExecutor, type ExecutorSubject } from '../conformance/executor-conformance.ts';
import { describeRows, type RowSubject } from './row-conformance.ts';

const model = { directory: resolve(import.meta.dirname, '../../../../models/emoji-sd'), threads: 1 };
const room = { maxSlots: 3, checkpointEvery: 2 };

function picture(changes: Record<string, unknown>) {
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 6, guidanceScale: 3, scheduler: 'dpmpp_2m' };
  const file = { outputFormat: 'png', outputCompression: 100, previewEvery: 2 };
  return { prompt: 'a cat on a blue background', negativePrompt: '', seed: 1, ...size, ...file, ...changes };
}

const pictures = {
  shortInput: ({ number, outputs }) => picture({ seed: number, n: outputs }),
  longInput: picture({ width: 256, height: 256, n: 2, numInferenceSteps: 200 }),
  badInput: { input: picture({ width: 100 }), message: 'width must be a multiple of 32' },
} satisfies Partial<ExecutorSubject>;

const inProcess: ExecutorSubject & RowSubject = {
  ...pictures,
  create: (onEvents) => new InProcessExecutor({ ...room, onEvents, loadPipeline: () => loadPipeline(model) }),
  canBeKilled: false,
};
const process: ExecutorSubject & RowSubject = {
  ...pictures,
  create: (onEvents) => new ProcessExecutor({ ...room, onEvents, model }),
};

const wish = (input: Partial<WriterInput>): WriterInput => ({ prompt: 'a wish', slots: 1, ...input });
const writer: ExecutorSubject & RowSubject = {
  create: (onEvents) =>
    new InProcessExecutor({ ...room, onEvents, loadPipeline: () => Promise.resolve(new WriterPipeline()) }),
  shortInput: ({ number, outputs }) => wish({ prompt: `wish ${number}`, outputs }),
  longInput: wish({ max: Infinity }),
  badInput: { input: wish({ prompt: '' }), message: 'prompt: is empty' },
  canBeKilled: false,
};
const blockWriter: typeof writer = {
  ...writer,
  shortInput: ({ number, outputs }) => wish({ prompt: `wish ${number}`, mode: 'blocks', outputs }),
};

describeExecutor('in process, with pictures', inProcess);
describeRows('in process, with pictures', inProcess);
describeExecutor('in a process, with pictures', process);
describeRows('in a process, with pictures', process);
describeExecutor('in process, with text', writer);
describeRows('in process, with text', writer);
describeExecutor('in process, with text in blocks', blockWriter);
