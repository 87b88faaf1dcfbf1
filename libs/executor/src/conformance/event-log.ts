import type { ExecutorEvent, ExecutorListener } from '../executor-event.ts';

type Matcher = (event: ExecutorEvent) => boolean;

/** Records an executor's events and lets a test wait for one. */
export class EventLog {
  events: ExecutorEvent[] = [];
  #waiters: { matches: Matcher; resolve: (event: ExecutorEvent) => void }[] = [];

  /** The listener to create the executor with. */
  readonly listener: ExecutorListener = (batch) => {
    for (const event of batch) {
      this.events.push(event);
      for (const waiter of this.#waiters.splice(0)) {
        if (waiter.matches(event)) waiter.resolve(event);
        else this.#waiters.push(waiter);
      }
    }
  };

  /** Resolves with the first matching event, recorded or still to come. */
  next(matches: Matcher): Promise<ExecutorEvent> {
    const found = this.events.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => this.#waiters.push({ matches, resolve }));
  }

  /** Resolves with the event that ends the request: done, canceled, failed or lost. */
  end(requestId: string): Promise<ExecutorEvent> {
    return this.next((event) => event.type.startsWith('request-') && isOf(event, requestId));
  }

  /** Resolves with the request's first progress or text event. */
  firstProgress(requestId: string): Promise<ExecutorEvent> {
    return this.next((event) => ['progress', 'delta', 'snapshot'].includes(event.type) && isOf(event, requestId));
  }

  /** Returns all events of a type, optionally of one request. */
  of<Type extends ExecutorEvent['type']>(type: Type, requestId?: string) {
    return this.events.filter(
      (event): event is Extract<ExecutorEvent, { type: Type }> =>
        event.type === type && (requestId === undefined || isOf(event, requestId)),
    );
  }

  /** Returns the request's outputs by index. */
  outputs(requestId: string): Map<number, Buffer> {
    return new Map(this.of('output', requestId).map(({ index, output }) => [index, Buffer.from(output.data)]));
  }
}

function isOf(event: ExecutorEvent, requestId: string): boolean {
  return 'requestId' in event && event.requestId === requestId;
}
