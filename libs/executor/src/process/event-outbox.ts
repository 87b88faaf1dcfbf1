import type { EngineEvent, EventOf } from '../executor-event.ts';

export interface EventOutboxOptions {
  /** Resolves when they are on their way. */
  send: (events: readonly EngineEvent[]) => Promise<void>;
  /** Milliseconds, of a clock that only goes forward. */
  now?: () => number;
}

/** How often it is said at most how far rows are, ms. */
const quietMs = 100;

/**
 * Lets out what an engine says. What somebody waits for goes at once; how steps went and how far rows are by now goes along
 * with it, or ten times a second. For each message others wake up, who take their time from the step that runs by then.
 */
export class EventOutbox {
  readonly #options: Required<EventOutboxOptions>;
  #held: EngineEvent[] = [];
  #sentAtMs = -Infinity;

  constructor({ now = () => performance.now(), ...options }: EventOutboxOptions) {
    this.#options = { now, ...options };
  }

  /** What was said at one time. Who comes after it waits for the result. */
  push(events: readonly EngineEvent[]): void | Promise<void> {
    for (const event of events) this.#hold(event);
    if (this.#options.now() - this.#sentAtMs < quietMs && events.every(canWait)) return;
    return this.flush();
  }

  /** Lets out all that is left. */
  flush(): void | Promise<void> {
    if (this.#held.length === 0) return;
    const events = this.#held;
    this.#held = [];
    this.#sentAtMs = this.#options.now();
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
