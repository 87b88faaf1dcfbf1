import { setTimeout as delay } from 'node:timers/promises';
import {
  backOffMs,
  DarkroomError,
  type FailureCode,
  type ModelCard,
  retry,
  type RowRequest,
  withTimeLimit,
} from '@darkroom/core';
import type { ExecutorListener, RequestEndEvent } from '../executor-event.ts';
import { type Executor, type ExecutorHealth, unavailable } from '../executor.ts';
import { UpstreamError } from './backend-error.ts';
import type { BackendClient } from './backend-client.ts';
import { SilenceTimer } from './silence-timer.ts';

export interface CallOptions {
  /** Max concurrent calls, capped by the backend's own limit; 8 if neither is known. */
  maxSlots?: number | undefined;
  /** Interval between health checks, ms. */
  checkEveryMs?: number;
  /** Timeout of a health check, and of silence within a call after its first output event, ms. */
  timeoutMs?: number;
  /** Timeout of one attempt to start the backend, ms. Default: `timeoutMs`. */
  startTimeoutMs?: number;
  /**
   * Delay before a failed health check is repeated, and first delay between attempts to start, ms. The latter doubles
   * with each attempt, up to 20 times this value.
   */
  retryMs?: number;
  onEvents: ExecutorListener;
  /** Receives the reason after each failed attempt to start, and when only an operator can fix the backend. */
  onWaiting?: (reason: string) => void;
}

/** A request that has not ended. */
interface OpenRequest {
  readonly id: string;
  readonly input: unknown;
  readonly attachments: RowRequest['attachments'];
  /** Number of outputs still to come. */
  left: number;
  /** Aborts when the request is canceled, fails or its results are no longer wanted. */
  readonly controller: AbortController;
}

const maxPauseFactor = 20;
const defaultSlots = 8;

/** Runs requests on a backend (an upstream server or a custom module), one call per output. */
export class CallExecutor implements Executor {
  readonly #options: Required<Omit<CallOptions, 'maxSlots'>> & Pick<CallOptions, 'maxSlots'>;
  readonly #caller: BackendClient;
  /** Aborts when the executor stops or loses its backend; undefined unless started or starting. */
  #life: AbortController | undefined;
  #isReady = false;
  #maxSlots: number;
  readonly #open = new Map<string, OpenRequest>();
  /** Outputs that wait for a free slot. */
  #queue: { request: OpenRequest; index: number }[] = [];
  #calls = 0;

  constructor(caller: BackendClient, options: CallOptions) {
    const { checkEveryMs = 5000, timeoutMs = 60_000, retryMs = 250, onWaiting = () => {} } = options;
    const { startTimeoutMs = timeoutMs } = options;
    this.#options = { ...options, checkEveryMs, timeoutMs, startTimeoutMs, retryMs, onWaiting };
    this.#caller = caller;
    this.#maxSlots = options.maxSlots ?? defaultSlots;
  }

  /** The capacity that the backend reported at start. */
  get maxSlots(): number {
    return this.#maxSlots;
  }

  /** Retries while the backend is unavailable; throws if retrying cannot help. */
  async start(): Promise<ModelCard> {
    if (this.#life !== undefined) throw unavailable('executor.start', 'it is running or starting');
    const life = new AbortController();
    this.#life = life;
    try {
      const { card, slots } = await this.#describe(life.signal);
      const { maxSlots = slots ?? defaultSlots } = this.#options;
      this.#maxSlots = Math.min(maxSlots, slots ?? Infinity);
      this.#isReady = true;
      void this.#watch(life);
      return card;
    } catch (error) {
      if (this.#life === life) this.#life = undefined;
      throw life.signal.aborted ? unavailable('executor.start', 'it was stopped before it was ready') : error;
    }
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#isReady) throw unavailable('executor.submit', 'it is not running');
    for (const { id, input, indexes, attachments } of requests) {
      if (this.#open.has(id)) continue;
      const all = indexes ?? Array.from({ length: (input as { n: number }).n }, (_, index) => index);
      const request = { id, input, attachments, left: all.length, controller: new AbortController() };
      this.#open.set(id, request);
      this.#queue.push(...all.map((index) => ({ request, index })));
    }
    this.#callNext();
  }

  cancel(requestId: string): void {
    const request = this.#open.get(requestId);
    if (request !== undefined) this.#end(request, { type: 'request-canceled', requestId });
  }

  /** Drops all open requests and reports `engine-lost`. A remote server keeps running: it is not ours to kill. */
  kill(): void {
    if (this.#isReady) this.#lose('was dropped');
  }

  async checkHealth(): Promise<ExecutorHealth> {
    const startedAtMs = performance.now();
    const life = this.#isReady ? this.#life : undefined;
    const isHealthy = life !== undefined && (await this.#probe(life.signal)) === undefined;
    const waiting = new Set(this.#queue.map(({ request }) => request));
    const latencyMs = performance.now() - startedAtMs;
    return { isHealthy, slots: this.#calls, waitingRequests: waiting.size, latencyMs };
  }

  shutdown(): Promise<void> {
    this.#drop();
    return this.#caller.close(false);
  }

  #describe(signal: AbortSignal) {
    const { retryMs, startTimeoutMs, onWaiting } = this.#options;
    return retry(() => withTimeLimit(startTimeoutMs, signal, (both) => this.#caller.describe(both)), {
      signals: [signal],
      pauseMs(error, failures) {
        if (signal.aborted || !(error instanceof UpstreamError) || error.code !== 'unavailable') return undefined;
        onWaiting(error.message);
        return backOffMs(failures, { firstMs: retryMs, maxMs: maxPauseFactor * retryMs });
      },
    });
  }

  /**
   * Checks the backend's health periodically, so that an idle worker or one that waits for a hung call notices its
   * loss.
   */
  async #watch({ signal }: AbortController): Promise<void> {
    for (;;) {
      await delay(this.#options.checkEveryMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      const reason = await this.#reasonNotAlive(signal);
      if (signal.aborted) return;
      if (reason !== undefined) return this.#lose(reason);
    }
  }

  /** Checks health twice before reporting a loss: one check may hit a transient failure such as a proxy's 502. */
  async #reasonNotAlive(signal: AbortSignal): Promise<string | undefined> {
    if ((await this.#probe(signal)) === undefined) return undefined;
    await delay(this.#options.retryMs, undefined, { signal }).catch(() => {});
    return this.#probe(signal);
  }

  /** Returns why the health check failed, or undefined if the backend is healthy. */
  async #probe(signal: AbortSignal): Promise<string | undefined> {
    try {
      await withTimeLimit(this.#options.timeoutMs, signal, (both) => this.#caller.check(both));
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  #lose(message: string, blame: { countsNoAttempt?: true } = {}): void {
    const requestIds = this.#drop();
    void this.#caller.close(true);
    this.#options.onEvents([{ type: 'engine-lost', message, requestIds, ...blame }]);
  }

  #drop(): string[] {
    const requests = [...this.#open.values()];
    this.#isReady = false;
    this.#life?.abort();
    this.#life = undefined;
    this.#open.clear();
    this.#queue = [];
    for (const { controller } of requests) controller.abort();
    return requests.map(({ id }) => id);
  }

  #callNext(): void {
    while (this.#calls < this.#maxSlots) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      void this.#call(next);
    }
  }

  async #call({ request, index }: { request: OpenRequest; index: number }): Promise<void> {
    this.#calls += 1;
    // The slot becomes free only when the call has ended, which may be later.
    const silenceTimer = new SilenceTimer(this.#options.timeoutMs, (silentMs) => {
      const message = `${this.#caller.name} sent nothing for an output within ${silentMs / 1000} s`;
      void this.#fail(request, unavailable('executor.call', message), 'timeout');
    });
    try {
      await this.#run(request, { index, silenceTimer });
    } catch (error) {
      await this.#fail(request, error);
    } finally {
      silenceTimer.end();
      this.#calls -= 1;
      this.#callNext();
    }
  }

  async #run(
    request: OpenRequest,
    { index, silenceTimer }: { index: number; silenceTimer: SilenceTimer },
  ): Promise<void> {
    const { id: requestId, input, attachments, controller } = request;
    const { onEvents } = this.#options;
    const callEvents = this.#caller.run({ input, index, attachments }, controller.signal);
    for (;;) {
      const { done, value } = await callEvents.next();
      if (controller.signal.aborted) {
        if (done === true) return;
      } else if (done === true) {
        onEvents([{ type: 'output', requestId, index, output: value }]);
        request.left -= 1;
        if (request.left === 0) this.#end(request, { type: 'request-done', requestId });
        return;
      } else {
        silenceTimer.restart(value !== undefined);
        onEvents(value === undefined ? [] : [{ ...value, requestId, index }]);
      }
    }
  }

  /** Reports a lost backend for all requests; otherwise fails this request alone, after the backend's `Retry-After`. */
  async #fail(request: OpenRequest, error: unknown, code: FailureCode = 'engine_error'): Promise<void> {
    const { id: requestId } = request;
    if (request.controller.signal.aborted) return;
    // Stop the request's other outputs.
    this.#stop(request);
    const message = messageOf(error);
    if (DarkroomError.isInstance(error) && error.code === 'invalid_request')
      return this.#end(request, { type: 'request-failed', requestId, code: error.code, message });
    if (DarkroomError.isInstance(error) && error.code === 'model_unsupported') {
      // The backend passes its health check, so only this message tells an operator why no request succeeds.
      this.#options.onWaiting(message);
      return this.#lose(message, { countsNoAttempt: true });
    }
    if (this.#life === undefined) return;
    const { signal } = this.#life;
    const reason = await this.#reasonNotAlive(signal);
    if (!signal.aborted && reason !== undefined) return this.#lose(reason);
    const retryAfterMs = error instanceof UpstreamError ? error.retryAfterMs : 0;
    await delay(retryAfterMs, undefined, { signal }).catch(() => {});
    // The request may have been canceled during the delay.
    if (this.#open.get(requestId) === request)
      this.#end(request, { type: 'request-lost', requestId, message, code, ...stackOf(error) });
  }

  #end(request: OpenRequest, event: RequestEndEvent): void {
    this.#open.delete(request.id);
    // A finished request has no call to abort, and its connection can be reused.
    if (event.type !== 'request-done') this.#stop(request);
    this.#options.onEvents([event]);
    this.#callNext();
  }

  #stop(request: OpenRequest): void {
    request.controller.abort();
    this.#queue = this.#queue.filter((waiting) => waiting.request !== request);
  }
}

function stackOf(error: unknown): { stack?: string } {
  return error instanceof Error && error.stack !== undefined ? { stack: error.stack } : {};
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
