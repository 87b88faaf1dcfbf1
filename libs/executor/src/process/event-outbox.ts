import type { EngineEvent, EventOf } from '../executor-event.ts';

export interface EventOutboxOptions {
  /** Resolves when they are on their way. */
  send: (events: readonly EngineEvent[]) => Promise<void>;
  /** Milliseconds, of a clock that only goes forward. */
  now?: () => number;
}

/** How old it may be what is said of how far rows are, ms. */
const oldestMs = 100;

/**
 * Lets out what an engine says. What somebody waits for goes at once; how steps went and how far rows are by now goes along
 * with it, or before it would be too old by the end of the next step. For each message others wake up, who take their time
 * from the step that runs by then.
 */
export class EventOutbox {
  readonly #options: Required<EventOutboxOptions>;
  #held: EngineEvent[] = [];
  /** When the first of them was said. Nothing is held in the beginning: that an engine makes steps is news. */
  #heldSinceMs = -Infinity;

  constructor({ now = () => performance.now(), ...options }: EventOutboxOptions) {
    this.#options = { now, ...options };
  }

  /** What was said at one time. Who comes after it waits for the result. */
  push(events: readonly EngineEvent[]): void | Promise<void> {
    const nowMs = this.#options.now();
    this.#heldSinceMs = Math.min(this.#heldSinceMs, nowMs);
    for (const event of events) this.#hold(event);
    const stepMs = events.reduce(
      (longest, event) => (event.type === 'stats' ? Math.max(longest, event.stepMs) : longest),
      0,
    );
    if (events.every(canWait) && nowMs + stepMs - this.#heldSinceMs <= oldestMs) return;
    return this.flush();
  }

  /** Lets out all that is left. */
  flush(): void | Promise<void> {
    if (this.#held.length === 0) return;
    const events = this.#held;
    this.#held = [];
    this.#heldSinceMs = Infinity;
    return this.#options.send(events);
  }

  /** Of how far a row is only the newest is kept. */
  #hold(event: EngineEvent): void {
    if (isProgress(event)) {
      const { requestId, index } = event;
      const at = this.#held.findIndex(
        (other) => isProgress(other) && other.index === index && other.requestId === requestId,
      );
      if (at >= 0) this.#held.splice(at, 1);
    }
    this.#held.push(event);
  }
}

function canWait(event: EngineEvent): boolean {
  return event.type === 'stats' || isProgress(event);
}

/** With nothing to show. */
function isProgress(event: EngineEvent): event is EventOf<'progress'> {
  return event.type === 'progress' && event.preview === undefined;
}
