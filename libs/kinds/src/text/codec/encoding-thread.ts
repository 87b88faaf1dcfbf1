import { Worker } from 'node:worker_threads';
import { DarkroomError } from '@darkroom/core';
import type { TextCodec } from './text-codec.ts';

// A thread runs no TypeScript, so it is run from the sources, by these and by what is built of them.
const script = new URL('../../../src/text/codec/encode-thread.mjs', import.meta.url);

/** UTF-16 units that may wait for the thread, which takes some seconds for them; one text may always. */
const mostWaiting = 8_000_000;

/** Makes ids of texts beside the event loop: of a million characters that can take seconds. */
export interface EncodingThread {
  /**
   * As the codec's own, one text after the other. Of a text of more than `most` tokens only a beginning is read, of more than these.
   * Rejects with what went wrong in the thread, and with `overloaded` while too much is waiting.
   */
  encode(text: string, options: Parameters<TextCodec['encode']>[1] & { most: number }): Promise<number[]>;
  /** Ends it when all that was asked for is answered. */
  close(): void;
}

/** @param document a codec's. The thread begins with the first text, and keeps no process alive. */
export function createEncodingThread(document: Uint8Array): EncodingThread {
  let thread: Worker | undefined;
  const waiting: { length: number; resolve: (ids: number[]) => void; reject: (error: unknown) => void }[] = [];
  let isClosed = false;
  let waitingUnits = 0;
  function settle(ids: number[]): void {
    const first = waiting.shift();
    waitingUnits -= first?.length ?? 0;
    first?.resolve(ids);
    if (isClosed && waiting.length === 0) void thread?.terminate();
  }
  function start(): Worker {
    const worker = new Worker(script, { workerData: document });
    worker.on('message', settle);
    worker.on('error', (error) => {
      // The next text begins another one.
      thread = undefined;
      waitingUnits = 0;
      for (const { reject } of waiting.splice(0)) reject(error);
    });
    // Listening for messages would keep the process alive, so this comes last.
    worker.unref();
    return worker;
  }
  return {
    encode: (text, options) =>
      new Promise((resolve, reject) => {
        if (waitingUnits > 0 && waitingUnits + text.length > mostWaiting) return reject(tooMuch());
        waitingUnits += text.length;
        thread ??= start();
        waiting.push({ length: text.length, resolve, reject });
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
        thread.postMessage({ text, ...options });
      }),
    close() {
      isClosed = true;
      if (waiting.length === 0) void thread?.terminate();
    },
  };
}

function tooMuch(): DarkroomError {
  return new DarkroomError('overloaded', 'text.encode', 'Too many long prompts are being read, try again later.');
}
