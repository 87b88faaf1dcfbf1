import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { PromptJob, PromptRead } from './read-prompt.ts';

// Always the built entry: Node does not run TypeScript. Run `npm run build` before tests of the sources.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../../dist/text/codec' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/prompt-thread-entry.js`, import.meta.url));

const startLimitMs = 120_000;
/** Returns the heap limit of the thread: a tokenizer takes many times the bytes of its document. */
const maxHeapMb = (document: Uint8Array): number => 128 + Math.ceil((24 * document.byteLength) / 2 ** 20);

interface Reading {
  job: PromptJob;
  limitMs: number;
  resolve: (read: PromptRead) => void;
  reject: (error: unknown) => void;
}

/** Reads prompts with one codec in a thread, one after the other. A prompt that takes too long ends the thread. */
export class PromptThread {
  readonly #document: Uint8Array;
  /** Queue of prompts; the first is being read. */
  readonly #readings: Reading[] = [];
  #worker: Worker | undefined;
  #isReady = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(document: Uint8Array) {
    this.#document = document;
  }

  /** Queues a prompt. Rejects if the thread fails. */
  read(job: PromptJob, limitMs: number): Promise<PromptRead> {
    return new Promise((resolve, reject) => {
      this.#readings.push({ job, limitMs, resolve, reject });
      if (this.#readings.length === 1) this.#next();
    });
  }

  /** Ends the thread once it has read all prompts. */
  close(): void {
    this.#isClosed = true;
    if (this.#readings.length === 0) void this.#worker?.terminate();
  }

  #next(): void {
    const [reading] = this.#readings;
    const worker = this.#worker;
    if (reading === undefined) {
      if (this.#isClosed) void worker?.terminate();
    } else if (worker === undefined) this.#start();
    else if (this.#isReady) {
      worker.postMessage(reading.job, []);
      this.#endAfter(worker, reading.limitMs, () =>
        problem(reading, `longer than ${Math.ceil(reading.limitMs / 1000)} s`),
      );
    }
  }

  #start(): void {
    const resourceLimits = { maxOldGenerationSizeMb: maxHeapMb(this.#document) };
    // Do not inherit flags of this process, such as a test's resolve conditions.
    const worker = new Worker(entry, { workerData: this.#document, execArgv: [], resourceLimits });
    this.#worker = worker;
    this.#isReady = false;
    worker.on('message', (message: PromptRead | 'ready') => {
      if (worker !== this.#worker) return;
      if (message !== 'ready') return this.#settle(message);
      clearTimeout(this.#timer);
      this.#isReady = true;
      this.#next();
    });
    worker.on('error', (error) => {
      const [reading] = this.#readings;
      const isMemory = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#replace(worker, isMemory && this.#isReady && reading ? problem(reading, 'too much memory') : error);
    });
    this.#endAfter(worker, startLimitMs, () => new Error('the thread that reads prompts does not start'));
    // Call unref last: adding listeners would keep the process alive.
    worker.unref();
  }

  #endAfter(worker: Worker, ms: number, outcome: () => PromptRead | Error): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#replace(worker, outcome()), ms).unref();
  }

  /** Ends the thread and its current prompt; the next prompt starts another thread. */
  #replace(worker: Worker, outcome: PromptRead | Error): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    void worker.terminate();
    this.#settle(outcome);
  }

  #settle(outcome: PromptRead | Error): void {
    clearTimeout(this.#timer);
    const reading = this.#readings.shift();
    if (outcome instanceof Error) reading?.reject(outcome);
    else reading?.resolve(outcome);
    this.#next();
  }
}

function problem({ job }: Reading, takes: string): PromptRead {
  const field = 'messages' in job || job.isRendered === true ? 'messages' : 'prompt';
  return { problem: `${field}: takes ${takes} to read` };
}
