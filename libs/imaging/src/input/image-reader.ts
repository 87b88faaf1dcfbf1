/** Decodes clients' image files in a separate process with a memory limit. */
import { fileURLToPath } from 'node:url';
import { Child, type ChildEnd } from '@darkroom/core';
import { z } from 'zod';
import type { FittedImage, ImagePart } from './fit-image.ts';
import { type ImageRefusal, type ImageSize, refused } from './image-refusal.ts';
import { cpuLimitExitCode, type MessageFromReader, type MessageToReader } from './reader-message.ts';

export interface ImageFit {
  size: ImageSize;
  parts: readonly ImagePart[];
}

/** `own` is the image's size before fitting. */
export type ReadImageResult<Fit> = { status: 'fitted'; own: ImageSize; fit: Fit; fitted: FittedImage } | ImageRefusal;

export interface ImageReaderOptions {
  /** Larger images are refused before they are decoded. */
  maxPixels: number;
  /** CPU time limit per file, ms. */
  maxCpuMs?: number;
}

/** The largest legitimate files take two seconds on a slow machine. */
const defaultMaxCpuMs = 10_000;
/**
 * Limit on the process's data segment: a fixed part plus a part per pixel, sized for WebP files with transparency,
 * which need the most. Less than half of it is ever used.
 */
const baseBytes = 224 * 2 ** 20;
const bytesPerPixel = 24;
/** Timeout for a process that hangs without using CPU time. */
const hangTimeoutMs = 60_000;
/** A process that is idle for so long is ended, to free its memory. */
const idleMs = 5000;

// Always the built file: Node cannot run TypeScript here, so tests of the sources need `npm run build` first.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/input' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/reader-process.js`, import.meta.url));

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array).optional();
const messageFromReader: z.ZodType<MessageFromReader> = z.discriminatedUnion('status', [
  z.object({ status: z.literal('started') }),
  z.object({ status: z.literal('read'), width: z.number(), height: z.number() }),
  z.object({ status: z.literal('fitted'), image: bytes, grey: bytes, transparency: bytes }),
  z.object({ status: z.literal('refused'), received: z.string(), expected: z.string() }),
  z.object({ status: z.literal('failed'), message: z.string() }),
]);

interface Reader {
  child: Child<MessageToReader, MessageFromReader>;
  /** Resolves when the process takes files. */
  started: Promise<MessageFromReader>;
}

/** Reads one file after the other. Starts the process for the first file, and again if a file ended it. */
export class ImageReader {
  #reader: Reader | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idleTimer: NodeJS.Timeout | undefined;
  readonly #options: Required<ImageReaderOptions>;

  constructor({ maxPixels, maxCpuMs = defaultMaxCpuMs }: ImageReaderOptions) {
    this.#options = { maxPixels, maxCpuMs };
  }

  /**
   * Decodes a file to the size and parts that `choose` returns for the image's size. Rethrows errors of `choose`.
   *
   * @throws Error if the process cannot be started, or fails for a reason other than the file.
   */
  read<Fit extends ImageFit>(bytes: Uint8Array, choose: (own: ImageSize) => Fit): Promise<ReadImageResult<Fit>> {
    const reading = this.#last.then(() => this.#readNext(bytes, choose));
    this.#last = reading.catch(() => {});
    return reading;
  }

  async #readNext<Fit extends ImageFit>(
    bytes: Uint8Array,
    choose: (own: ImageSize) => Fit,
  ): Promise<ReadImageResult<Fit>> {
    clearTimeout(this.#idleTimer);
    const reader = (this.#reader ??= this.#start());
    const hung = setTimeout(() => reader.child.kill(), hangTimeoutMs);
    try {
      const start = await reader.started;
      if (start.status !== 'started') return refusalOf(start);
      const head = { type: 'open', length: bytes.byteLength, ...this.#options } as const;
      const own = await sendMessage(reader.child, head, bytes);
      if (own.status !== 'read') return refusalOf(own);
      const fit = chooseFit(reader.child, own, choose);
      const fitted = await sendMessage(reader.child, { type: 'fit', size: fit.size, parts: fit.parts });
      return fitted.status === 'fitted' ? { status: 'fitted', own, fit, fitted } : refusalOf(fitted);
    } finally {
      clearTimeout(hung);
      this.#idleTimer = setTimeout(() => this.#stop(reader), idleMs).unref();
    }
  }

  #start(): Reader {
    const child = new Child<MessageToReader, MessageFromReader>({
      entry,
      schema: messageFromReader,
      maxDataBytes: baseBytes + this.#options.maxPixels * bytesPerPixel,
      // Otherwise V8 maps 512 MiB for compiled code, on Node 24 as writable data. Decoders are native.
      nodeFlags: ['--jitless', '--max-old-space-size=64'],
      hasStdin: true,
      // Files end processes, and V8 and decoders write about it: the log of the API has it only for a fault of ours.
      stderr: 'tail',
    });
    child.unref();
    const started = child.next().then(async (message) => message ?? failureOf(await child.ended));
    const reader = { child, started };
    void child.ended.then(() => this.#forget(reader));
    return reader;
  }

  #stop(reader: Reader): void {
    this.#forget(reader);
    reader.child.kill();
  }

  #forget(reader: Reader): void {
    if (this.#reader === reader) this.#reader = undefined;
  }
}

function chooseFit<Fit>(child: Reader['child'], own: ImageSize, choose: (own: ImageSize) => Fit): Fit {
  try {
    return choose({ width: own.width, height: own.height });
  } catch (error) {
    child.send({ type: 'drop' });
    throw error;
  }
}

/** Sends a message and its bytes. Resolves with the reply, or with a refusal if the file ends the process. */
async function sendMessage(
  child: Reader['child'],
  message: MessageToReader,
  data?: Uint8Array,
): Promise<MessageFromReader> {
  const answered = child.next();
  child.send(message, data);
  const answer = await answered;
  if (answer !== undefined) return answer;
  const end = await child.ended;
  return isLimit(end) ? tooMuch : failureOf(end);
}

function refusalOf(answer: MessageFromReader): ImageRefusal {
  if (answer.status === 'refused') return answer;
  throw new Error(answer.status === 'failed' ? answer.message : `unexpected answer ${answer.status}`);
}

function failureOf({ how, stderr }: ChildEnd): MessageFromReader {
  return { status: 'failed', message: `the process that reads images ${how}: ${stderr}` };
}

const tooMuch = refused('an image that takes too much memory or time to decode', 'a simpler one');

/** Returns true if a process ended at its memory limit (by a signal) or at its CPU limit (with an exit code). */
function isLimit({ code, signal }: ChildEnd): boolean {
  return signal !== null || code === cpuLimitExitCode;
}
