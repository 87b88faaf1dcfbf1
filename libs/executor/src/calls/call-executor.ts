import { setTimeout as delay } from 'node:timers/promises';
import { DarkroomError, type ModelCard, type RowRequest, within } from '@darkroom/core';
import type { ExecutorListener, RequestEndEvent } from '../executor-event.ts';
import type { Executor, ExecutorHealth } from '../executor.ts';
import { UpstreamError } from '../upstream/upstream-error.ts';
import type { Caller } from './caller.ts';
import { Patience } from './patience.ts';

export interface CallOptions {
  /** Calls at once at most, of those that the other side takes; where neither says it, 8. */
  maxSlots?: number | undefined;
  /** Between two looks whether it lives, ms. */
  checkEveryMs?: number;
  /** How long it may take to say that it lives, and how long a call may be silent once it has begun to speak, ms. */
  patienceMs?: number;
  /** How long one try to start it may take, ms; as long as that by default. */
  startPatienceMs?: number;
  /** Between two looks of which one failed; and the first pause of those in which `start` waits for it, ms: each is twice the one before, up to 20 times this. */
  retryMs?: number;
  onEvents: ExecutorListener;
  /** Hears why `start` waits, each time it has looked; and why nothing can be made, where only an operator can help. */
  onWaiting?: (reason: string) => void;
}

/** A request that has not ended. */
interface OpenRequest {
  readonly id: string;
  readonly input: unknown;
  /** Outputs that are yet to come. */
  left: number;
  /** Aborted when nothing more of it is wanted. */
  readonly controller: AbortController;
}

const longestPauses = 20;
const unsaidSlots = 8;

/** Hands whole requests to somebody who runs the model, one call for each output, and says what comes back. */
export class CallExecutor implements Executor {
  readonly #options: Required<Omit<CallOptions, 'maxSlots'>> & Pick<CallOptions, 'maxSlots'>;
  readonly #caller: Caller;
  /** Aborted when it is stopped, or the other side is lost; undefined while it is neither started nor starting. */
  #life: AbortController | undefined;
  #isReady = false;
  #maxSlots: number;
  readonly #open = new Map<string, OpenRequest>();
  /** Outputs that wait for a place. */
  #line: { request: OpenRequest; index: number }[] = [];
  #calls = 0;

  constructor(caller: Caller, options: CallOptions) {
    const { checkEveryMs = 5000, patienceMs = 60_000, retryMs = 250, onWaiting = () => {} } = options;
    const { startPatienceMs = patienceMs } = options;
    this.#options = { ...options, checkEveryMs, patienceMs, startPatienceMs, retryMs, onWaiting };
    this.#caller = caller;
    this.#maxSlots = options.maxSlots ?? unsaidSlots;
  }

  /** As the other side said, once it is started. */
  get maxSlots(): number {
    return this.#maxSlots;
  }

  /** Waits for a server that is away or not ready; throws where waiting is of no use. */
  async start(): Promise<ModelCard> {
    if (this.#life !== undefined) throw unavailable('executor.start', 'it is running or starting');
    const life = new AbortController();
    this.#life = life;
    try {
      const { card, slots } = await this.#describe(life.signal);
      const { maxSlots = slots ?? unsaidSlots } = this.#options;
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
    for (const { id, input, indexes } of requests) {
      if (this.#open.has(id)) continue;
      const all = indexes ?? Array.from({ length: (input as { n: number }).n }, (_, index) => index);
      const request = { id, input, left: all.length, controller: new AbortController() };
      this.#open.set(id, request);
      this.#line.push(...all.map((index) => ({ request, index })));
    }
    this.#callNext();
  }

  cancel(requestId: string): void {
    const request = this.#open.get(requestId);
    if (request !== undefined) this.#end(request, { type: 'request-canceled', requestId });
  }

  /** A server is not ours to kill: all that it does for us is dropped. */
  kill(): void {
    if (this.#isReady) this.#lose('was dropped');
  }

  async checkHealth(): Promise<ExecutorHealth> {
    const startedAtMs = performance.now();
    const isHealthy = this.#isReady && (await this.#look(this.#life!.signal)) === undefined;
    const waiting = new Set(this.#line.map(({ request }) => request));
    const latencyMs = performance.now() - startedAtMs;
    return { isHealthy, slots: this.#calls, waitingRequests: waiting.size, latencyMs };
  }

  shutdown(): Promise<void> {
    this.#drop();
    return this.#caller.rest(false);
  }

  async #describe(signal: AbortSignal) {
    const { retryMs, startPatienceMs, onWaiting } = this.#options;
    for (let pauseMs = retryMs; ; pauseMs = Math.min(2 * pauseMs, longestPauses * retryMs)) {
      try {
        return await within(startPatienceMs, signal, (both) => this.#caller.describe(both));
      } catch (error) {
        if (signal.aborted || !(error instanceof UpstreamError) || error.code !== 'unavailable') throw error;
        onWaiting(error.message);
      }
      await delay(pauseMs, undefined, { signal });
    }
  }

  /** Looks whether it lives, so that a worker without work knows it too, and one that waits for an answer that never comes. */
  async #watch({ signal }: AbortController): Promise<void> {
    for (;;) {
      await delay(this.#options.checkEveryMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      const reason = await this.#reasonNotAlive(signal);
      if (signal.aborted) return;
      if (reason !== undefined) return this.#lose(reason);
    }
  }

  /** By two looks in a row: one may hit a moment of its own, such as a 502 of a proxy. */
  async #reasonNotAlive(signal: AbortSignal): Promise<string | undefined> {
    if ((await this.#look(signal)) === undefined) return undefined;
    await delay(this.#options.retryMs, undefined, { signal }).catch(() => {});
    return this.#look(signal);
  }

  /** Why it does not live, if it does not. */
  async #look(signal: AbortSignal): Promise<string | undefined> {
    try {
      await within(this.#options.patienceMs, signal, (both) => this.#caller.check(both));
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  #lose(message: string, blame: { isBlameless?: true } = {}): void {
    const requestIds = this.#drop();
    void this.#caller.rest(true);
    this.#options.onEvents([{ type: 'engine-lost', message, requestIds, ...blame }]);
  }

  #drop(): string[] {
    const requests = [...this.#open.values()];
    this.#isReady = false;
    this.#life?.abort();
    this.#life = undefined;
    this.#open.clear();
    this.#line = [];
    for (const { controller } of requests) controller.abort();
    return requests.map(({ id }) => id);
  }

  #callNext(): void {
    while (this.#calls < this.#maxSlots && this.#line.length > 0) void this.#call(this.#line.shift()!);
  }

  async #call({ request, index }: { request: OpenRequest; index: number }): Promise<void> {
    this.#calls += 1;
    // Its place is free when it has ended, which may be later.
    const patience = new Patience(this.#options.patienceMs, (silentMs) => {
      const message = `${this.#caller.name} has said nothing of an output for ${silentMs / 1000} s`;
      void this.#fail(request, unavailable('executor.call', message));
    });
    try {
      await this.#run(request, { index, patience });
    } catch (error) {
      await this.#fail(request, error);
    } finally {
      patience.end();
      this.#calls -= 1;
      this.#callNext();
    }
  }

  async #run(request: OpenRequest, { index, patience }: { index: number; patience: Patience }): Promise<void> {
    const { id: requestId, input, controller } = request;
    const { onEvents } = this.#options;
    const pieces = this.#caller.run({ input, index }, controller.signal);
    for (;;) {
      const { done, value } = await pieces.next();
      if (controller.signal.aborted) {
        if (done === true) return;
      } else if (done === true) {
        onEvents([{ type: 'output', requestId, index, output: value }]);
        request.left -= 1;
        if (request.left === 0) this.#end(request, { type: 'request-done', requestId });
        return;
      } else {
        patience.heard(value !== undefined);
        onEvents(value === undefined ? [] : [{ ...value, requestId, index }]);
      }
    }
  }

  /** A server that is away is away for all. One that is busy gets the place of this request later. */
  async #fail(request: OpenRequest, error: unknown): Promise<void> {
    const { id: requestId } = request;
    if (request.controller.signal.aborted) return;
    // Its other outputs are of no use any more.
    this.#stop(request);
    const message = messageOf(error);
    if (DarkroomError.isInstance(error) && error.code === 'invalid_request')
      return this.#end(request, { type: 'request-failed', requestId, code: error.code, message });
    if (DarkroomError.isInstance(error) && error.code === 'model_unsupported') {
      // It lives, and will be found to: nobody else would say why nothing is made.
      this.#options.onWaiting(message);
      return this.#lose(message, { isBlameless: true });
    }
    const { signal } = this.#life!;
    const reason = await this.#reasonNotAlive(signal);
    if (!signal.aborted && reason !== undefined) return this.#lose(reason);
    const retryAfterMs = error instanceof UpstreamError ? error.retryAfterMs : 0;
    await delay(retryAfterMs, undefined, { signal }).catch(() => {});
    // It may have been canceled.
    if (this.#open.get(requestId) === request) this.#end(request, { type: 'request-lost', requestId, message });
  }

  #end(request: OpenRequest, event: RequestEndEvent): void {
    this.#open.delete(request.id);
    // What is done has said all; its connection can be used again.
    if (event.type !== 'request-done') this.#stop(request);
    this.#options.onEvents([event]);
    this.#callNext();
  }

  #stop(request: OpenRequest): void {
    request.controller.abort();
    this.#line = this.#line.filter((waiting) => waiting.request !== request);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function unavailable(op: string, message: string): DarkroomError {
  return new DarkroomError('unavailable', op, message);
}
