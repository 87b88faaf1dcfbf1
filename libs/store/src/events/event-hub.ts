import { modelOfRequestId, type RequestEvent } from '@darkroom/core';
import { decodeMessage } from './event-entry.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { createSubscriber, type Subscriber } from '../connection/subscriber.ts';

/** Live events of any number of requests over one connection. What comes may have gaps: compare `sequence`, fill with `readEvents`. */
export interface EventHub extends Omit<Subscriber, 'subscribe'> {
  /** Resolves once events are coming; the result ends it. An id that is none of ours never gets any. */
  subscribe(id: string, listener: (event: RequestEvent) => void): Promise<() => void>;
}

export function createEventHub(store: StoreConnection): EventHub {
  const subscriber = createSubscriber(store);
  return {
    async subscribe(id, listener) {
      const model = modelOfRequestId(id);
      if (model === undefined) return () => {};
      return subscriber.subscribe(store.keysOf(model).events(id), (message) => listener(decodeMessage(message)));
    },
    onReconnect: (listener) => subscriber.onReconnect(listener),
    get size() {
      return subscriber.size;
    },
    close: () => subscriber.close(),
  };
}
