import { isTerminalState, type StoredEvent, type TerminalState, WakeSignal } from '@darkroom/core';
import { readEvents, readLogEnd } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';

/** `done`: no more events. `draining`: this process stops; continue on another replica. */
export type TailItem = readonly StoredEvent[] | 'heartbeat' | 'draining' | 'done';

/** Returns true for a terminal event. */
export function isEnd(event: StoredEvent): event is Extract<StoredEvent, { type: TerminalState }> {
  return isTerminalState(event.type);
}

export interface TailOptions {
  /** Sequence number of the last event seen; 0 for all. */
  after: number;
  /** The request is known to have ended, so the log is complete. */
  isEnded: boolean;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  /** The client shows progress events, so the worker must publish them. */
  includesProgress?: boolean;
}

export const heartbeatMs = 15_000;
/** Interval of checks for lost wake-ups. */
export const checkMs = 5000;
/** Time for which a read of the log marks the request as followed. */
const followMs = 3 * checkMs;
/** Events per read of the log: a slow client holds at most this many in memory. */
const readLimit = 32;

/** Published events buffered for a slow client: they contain previews, and a process has many clients. */
const publishedLimit = 16;

/**
 * Reads a request's events in order and without gaps: first the log after `after`, then new ones. Published events are
 * a shortcut: a gap in their sequence triggers a read of the log, and a slow tick finds lost ones. Reads nothing ahead
 * of the consumer, which must `close` it.
 */
export class EventTail {
  readonly #context: ApiContext;
  readonly #id: string;
  readonly #options: TailOptions;
  readonly #stops: (() => void)[];
  readonly #changed = new WakeSignal();
  readonly #followMs: number;
  /** Undefined for a request that has ended: it publishes no more events. */
  readonly #subscribing: Promise<() => void> | undefined;
  #isSubscribed = false;
  #last: number;
  #isEnded: boolean;
  #isDone = false;
  #isCheckDue = false;
  #isHeartbeatDue = false;
  /** Events may have been missed, so the log must be read. True until the first read. */
  #isBehind = true;
  #published: StoredEvent[] = [];

  constructor(context: ApiContext, id: string, options: TailOptions) {
    const { hub, every, draining } = context;
    const wake = (): void => this.#changed.wake();
    this.#context = context;
    this.#id = id;
    this.#options = options;
    this.#last = options.after;
    this.#isEnded = options.isEnded;
    this.#followMs = options.includesProgress === true ? followMs : 0;
    this.#stops = [
      hub.onReconnect(() => {
        this.#isBehind = true;
        wake();
      }),
      every(checkMs, () => {
        this.#isCheckDue = true;
        wake();
      }),
      every(heartbeatMs, () => {
        this.#isHeartbeatDue = true;
        wake();
      }),
      onAbort([draining, options.signal], wake),
    ];
    // Subscribe before the first read of the log, so that no event between the two is missed.
    if (!options.isEnded) this.#subscribing = hub.subscribe(id, (event) => this.#receive(event));
  }

  /** Waits for the next events; resolves with undefined once the client has disconnected. Throws if Redis is away. */
  async next(): Promise<TailItem | undefined> {
    const { draining, withStore } = this.#context;
    const subscribing = this.#subscribing;
    if (subscribing !== undefined && !this.#isSubscribed) await withStore(() => subscribing);
    this.#isSubscribed = true;
    while (!this.#options.signal.aborted) {
      if (this.#isDone) return 'done';
      if (draining.aborted) return 'draining';
      if (this.#isHeartbeatDue) {
        this.#isHeartbeatDue = false;
        return 'heartbeat';
      }
      const events = await this.#read();
      const last = events?.at(-1);
      if (last !== undefined) {
        this.#last = last.sequence;
        this.#isDone = isEnd(last);
        return events;
      }
      this.#isDone = events !== undefined && this.#isEnded;
      if (!this.#isDone) await this.#changed.wait();
    }
    return undefined;
  }

  /** Stops listening. Idempotent. */
  close(): void {
    for (const stop of this.#stops) stop();
    this.#subscribing?.then((leave) => leave()).catch(() => {});
  }

  #receive(event: StoredEvent): void {
    if (this.#published.length === publishedLimit) {
      this.#published.length = 0;
      this.#isBehind = true;
    } else if (!this.#isBehind) this.#published.push(event);
    this.#changed.wake();
  }

  /** Returns the events after `#last`; empty if there are none yet, undefined while Redis is unavailable. */
  async #read(): Promise<readonly StoredEvent[] | undefined> {
    try {
      if (this.#isCheckDue) await this.#checkLogEnd();
      for (let event = this.#published.shift(); event !== undefined; event = this.#published.shift()) {
        if (event.sequence === this.#last + 1) return [event];
        if (event.sequence > this.#last) this.#isBehind = true;
      }
      return this.#isBehind ? await this.#readLog() : [];
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      // The next tick retries. If the stream were closed, the client would reconnect and get a 503.
      this.#isCheckDue = true;
      return undefined;
    }
  }

  /** Finds events whose messages were lost, above all the end. Cheap: thousands of readers poll it. */
  async #checkLogEnd(): Promise<void> {
    const { last, isEnded } = await this.#context.withStore((store) => readLogEnd(store, this.#id));
    this.#isCheckDue = false;
    this.#isEnded = isEnded;
    // Reading the log renews the mark that the request is followed (`followMs`).
    if (isEnded || last !== this.#last || this.#followMs > 0) this.#isBehind = true;
  }

  async #readLog(): Promise<readonly StoredEvent[]> {
    const { withStore } = this.#context;
    const from = { after: this.#last, limit: readLimit, followMs: this.#followMs };
    this.#isBehind = false;
    const events = await withStore((store) => readEvents(store, this.#id, from));
    if (events.length === readLimit) this.#isBehind = true;
    return events.length === 0 && this.#isEnded ? this.#readEndAfterFailover() : events;
  }

  /**
   * Returns the terminal event of an ended log for a reader that is past it: a failover lost events that the reader has
   * seen, and the request continued from before them. Empty for a reader that began after the end.
   */
  async #readEndAfterFailover(): Promise<readonly StoredEvent[]> {
    const { withStore } = this.#context;
    const { last } = await withStore((store) => readLogEnd(store, this.#id));
    const hasSeenAll = this.#last === this.#options.after && this.#last <= last;
    return hasSeenAll ? [] : withStore((store) => readEvents(store, this.#id, { after: last - 1 }));
  }
}

/**
 * Calls `listener` when one of the signals aborts, at once if one has. Returns a function that removes the listener.
 */
export function onAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  if (signals.some(({ aborted }) => aborted)) listener();
  for (const signal of signals) signal.addEventListener('abort', listener);
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener);
  };
}
