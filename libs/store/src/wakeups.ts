import type { StoreConnection } from './store-connection.ts';
import { createSubscriber } from './subscriber.ts';

/** Tells a former that a model's queue or workers have changed. Wake-ups can be lost: keep a slow tick beside them. */
export interface Wakeups {
  listen(model: string, listener: () => void): Promise<() => void>;
  close(): void;
}

export function createWakeups(store: StoreConnection): Wakeups {
  const subscriber = createSubscriber(store);
  return {
    async listen(model, listener) {
      const stopReconnects = subscriber.onReconnect(listener);
      const stopMessages = await subscriber.subscribe(store.keysOf(model).wakeup, listener);
      return () => {
        stopReconnects();
        stopMessages();
      };
    },
    close: () => subscriber.close(),
  };
}
