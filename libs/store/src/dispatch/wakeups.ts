import type { StoreConnection } from '../connection/store-connection.ts';
import { createSubscriber } from '../connection/subscriber.ts';

/** Tells that something of a model has changed: for formers its queue or workers. Wake-ups can be lost: keep a slow tick beside them. */
export interface Wakeups {
  listen(model: string, listener: () => void, channel?: 'wakeup' | 'webhooks'): Promise<() => void>;
  close(): void;
}

export function createWakeups(store: StoreConnection): Wakeups {
  const subscriber = createSubscriber(store);
  return {
    async listen(model, listener, channel = 'wakeup') {
      const stopMessages = await subscriber.subscribe(store.keysOf(model)[channel], listener);
      const stopReconnects = subscriber.onReconnect(listener);
      return () => {
        stopReconnects();
        stopMessages();
      };
    },
    close: () => subscriber.close(),
  };
}
