import type { ExecutorEvent, ExecutorListener } from '../executor-event.ts';

type Matcher = (event: ExecutorEvent) => boolean;

/** Keeps what an executor says, and lets a test wait for it. */
export class EventLog {
  events: ExecutorEvent[] = [];
  #waiters: { matches: Matcher; resolve: (event: ExecutorEvent) => void }[] = [];

  /** What the executor is made with. */
  readonly listener: ExecutorListener = (batch) => {
    for (const event of batch) {
      this.events.push(event);
      for (const waiter of this.#waiters.splice(0)) {
        if (waiter.matches(event)) waiter.resolve(event);
        else this.#waiters.push(waiter);
      }
    }
  };

  /** The first such event, once it is said. */
  next(matches: Matcher): Promise<ExecutorEvent> {
    const found = this.events.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => this.#waiters.push({ matches, resolve }));
  }

  /** The request's end: done, canceled or failed. */
  end(requestId: string): Promise<ExecutorEvent> {
    return this.next((event) => event.type.startsWith('request-') && isOf(event, requestId));
  }

  /** The first sign that a request is under way. */
  firstWord(requestId: string): Promise<ExecutorEvent> {
    return this.next((event) => ['progress', 'delta', 'snapshot'].includes(event.type) && isOf(event, requestId));
  }

  /** All events of a type, or those of one request. */
  of<Type extends ExecutorEvent['type']>(type: Type, requestId?: string) {
    return this.events.filter(
      (event): event is Extract<ExecutorEvent, { type: Type }> =>
        event.type === type && (requestId === undefined || isOf(event, requestId)),
    );
  }

  /** What a request has given, by the index of the output. */
  outputs(requestId: string): Map<number, Buffer> {
    return new Map(this.of('output', requestId).map(({ index, output }) => [index, Buffer.from(output.data)]));
  }
}

function isOf(event: ExecutorEvent, requestId: string): boolean {
  return 'requestId' in event && event.requestId === requestId;
}
