import type { EngineEvent, EventOf } from '../executor-event.ts';

export interface EventOutboxOptions {
  /** Resolves when the events have been handed to the channel. */
  send: (events: readonly EngineEvent[]) => Promise<void>;
  /** Monotonic clock, ms. */
  now?: () => number;
}

/** Max age of pending progress events, ms. */
const maxAgeMs = 100;

/**
 * Batches an engine's events. Events that something waits for are sent at once; stats and progress go with them, or
 * before they exceed their max age during the next step. Each message wakes other processes, which slows the current
 * step.
 */
export class EventOutbox {
  readonly #options: Required<EventOutboxOptions>;
  #pending: EngineEvent[] = [];
  /**
   * When the first pending event arrived. -Infinity sends the first step at once: it shows that the engine is running.
   */
  #pendingSinceMs = -Infinity;

  constructor({ now = () => performance.now(), ...options }: EventOutboxOptions) {
    this.#options = { now, ...options };
  }

  /** Adds simultaneous events. Await the result before the next step. */
  push(events: readonly EngineEvent[]): void | Promise<void> {
    const nowMs = this.#options.now();
    this.#pendingSinceMs = Math.min(this.#pendingSinceMs, nowMs);
    for (const event of events) this.#add(event);
    const stepMs = events.reduce(
      (longest, event) => (event.type === 'stats' ? Math.max(longest, event.stepMs) : longest),
      0,
    );
    if (events.every(canWait) && nowMs + stepMs - this.#pendingSinceMs <= maxAgeMs) return;
    return this.flush();
  }

  /** Sends all pending events. */
  flush(): void | Promise<void> {
    if (this.#pending.length === 0) return;
    const events = this.#pending;
    this.#pending = [];
    this.#pendingSinceMs = Infinity;
    return this.#options.send(events);
  }

  /** Replaces a row's pending progress with the newest. */
  #add(event: EngineEvent): void {
    if (isProgress(event)) {
      const { requestId, index } = event;
      const at = this.#pending.findIndex(
        (other) => isProgress(other) && other.index === index && other.requestId === requestId,
      );
      if (at >= 0) this.#pending.splice(at, 1);
    }
    this.#pending.push(event);
  }
}

function canWait(event: EngineEvent): boolean {
  return event.type === 'stats' || isProgress(event);
}

/** True for progress without a preview. */
function isProgress(event: EngineEvent): event is EventOf<'progress'> {
  return event.type === 'progress' && event.preview === undefined;
}
