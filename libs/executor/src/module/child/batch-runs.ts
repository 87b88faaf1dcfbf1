import { setTimeout as delay } from 'node:timers/promises';
import { formatValue, isObject } from '../contract-violation.ts';
import type { OwnImageRequest, OwnTextRequest } from '../own-executor.ts';

type Request = OwnTextRequest | OwnImageRequest;
type RunBatch = (requests: readonly Request[], signal: AbortSignal) => Promise<unknown>;

interface WaitingCall {
  readonly request: Request;
  readonly signal: AbortSignal;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** All calls of its batch; empty until it runs. */
  batch: readonly WaitingCall[];
}

/** Time for which a request waits for those that arrive together with it, ms. */
const gatherMs = 5;

/** Passes calls to a module's `runBatch`: those that wait while a batch runs share the next one. */
export class BatchRuns {
  readonly #runBatch: RunBatch;
  #waiting: WaitingCall[] = [];
  #isRunning = false;

  constructor(runBatch: RunBatch) {
    this.#runBatch = runBatch;
  }

  /** Runs one request in a batch, with the values of `run`: a text is yielded, and the rest is returned. */
  async *run(request: Request, signal: AbortSignal): AsyncGenerator<unknown, unknown> {
    const result = await this.#wait(request, signal);
    if (!isObject(result) || result['text'] === undefined) return result;
    const { text, ...end } = result;
    yield text;
    return end;
  }

  /**
   * Resolves with the result of the batch. An aborted call resolves at once, unless it is the last wanted one of a
   * batch that runs: that one stays open until `runBatch` settles, so that a process whose `runBatch` hangs is killed.
   */
  #wait(request: Request, signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call: WaitingCall = { request, signal, resolve, reject, batch: [] };
      this.#waiting.push(call);
      const end = (): void => {
        const isWaiting = call.batch.length === 0;
        if (isWaiting || call.batch.some((each) => !each.signal.aborted)) resolve(undefined);
      };
      signal.addEventListener('abort', end, { once: true });
      void delay(gatherMs).then(() => this.#runNext());
    });
  }

  async #runNext(): Promise<void> {
    const calls = this.#isRunning ? [] : this.#waiting.splice(0).filter(({ signal }) => !signal.aborted);
    if (calls.length === 0) return;
    this.#isRunning = true;
    for (const call of calls) call.batch = calls;
    try {
      const requests = calls.map(({ request }) => request);
      const results: unknown = await this.#runBatch(requests, signalOfAll(calls));
      if (!Array.isArray(results) || results.length !== calls.length)
        throw new Error(`runBatch returned ${formatValue(results)}, expected a list of ${calls.length}`);
      for (const [at, { resolve, reject }] of calls.entries()) {
        const result = (results as unknown[])[at];
        if (result instanceof Error) reject(result);
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    } finally {
      this.#isRunning = false;
      void this.#runNext();
    }
  }
}

/** Returns a signal that aborts when no result of the batch is wanted any more. */
function signalOfAll(calls: readonly WaitingCall[]): AbortSignal {
  const controller = new AbortController();
  for (const { signal } of calls) {
    const check = (): void => {
      if (calls.every((call) => call.signal.aborted)) controller.abort();
    };
    signal.addEventListener('abort', check, { once: true });
  }
  return controller.signal;
}
