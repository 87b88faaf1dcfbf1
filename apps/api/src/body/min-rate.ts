import { withTimeLimit } from '@darkroom/core';
import { ApiError } from '../http/api-error.ts';

/** Bytes that must arrive in each window: 8 KiB/s. */
const minWindowBytes = 80 * 1024;
const windowMs = 10_000;

/**
 * Returns a function that reads the next chunk (undefined at the end). It throws 408 if the data arrives below the
 * minimum rate or takes longer than `limitMs` in all. Only time spent reading counts.
 */
export function withMinRate(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  limitMs = Infinity,
): () => Promise<Uint8Array | undefined> {
  let windowLeftMs = windowMs;
  let leftMs = limitMs;
  let bytes = 0;
  return async () => {
    const startMs = performance.now();
    const waitMs = Math.max(0, Math.min(windowLeftMs, leftMs));
    const { value } = await withTimeLimit(waitMs, signal, (both) => Promise.race([reader.read(), rejectOnAbort(both)]));
    const tookMs = performance.now() - startMs;
    windowLeftMs -= tookMs;
    leftMs -= tookMs;
    bytes += value?.byteLength ?? 0;
    if (bytes >= minWindowBytes) {
      windowLeftMs = windowMs;
      bytes = 0;
    }
    return value;
  };
}

async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => {
      const reason = signal.reason as Error;
      reject(reason.name === 'TimeoutError' ? bodyTooSlow() : reason);
    };
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

export function bodyTooSlow(): ApiError {
  const message = 'the body arrived too slowly, expected at least 8 KiB/s, and all files of a form within 60 s';
  return new ApiError(408, 'upload_timeout', message);
}
