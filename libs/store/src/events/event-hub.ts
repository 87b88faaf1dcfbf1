/**
 * Distributes Redis pub/sub messages to the listeners of a process over one subscriber connection. Pub/sub loses
 * messages it cannot deliver, so treat a message as a wake-up and the stored state as the truth.
 */
import type { Dispatchable, StoredEvent } from '@darkroom/core';
import { Cluster } from 'ioredis';
import type { RedisClient } from '../connection/open-redis.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { decodeWakeup } from '../dispatch/read-dispatchable.ts';
import { decodeEvent } from './read-events.ts';

type MessageListener = (message: Buffer) => void;

interface Channel {
  listeners: Set<MessageListener>;
  confirmed: Promise<unknown>;
}

export type EventHub = ReturnType<typeof createEventHub>;

export function createEventHub(store: StoreConnection) {
  const redis = store.duplicate();
  const channels = new Map<string, Channel>();
  const reconnectListeners = new Set<() => void>();
  onResubscribed(redis, () => reconnectListeners.forEach((listener) => listener()));
  redis.on('messageBuffer', (name: Buffer, message: Buffer) => {
    for (const listener of channels.get(name.toString())?.listeners ?? []) listener(message);
  });

  /**
   * Calls the listener after every reconnect, once all subscriptions are restored. Returns the function that removes
   * it.
   */
  function onReconnect(listener: () => void): () => void {
    reconnectListeners.add(listener);
    return () => reconnectListeners.delete(listener);
  }
  return {
    /**
     * Listens to live events of a request. There may be gaps: compare `sequence` and fill them with `readEvents`.
     * Resolves once subscribed, with the function that unsubscribes. An invalid id never gets any event.
     */
    async subscribe(id: string, listener: (event: StoredEvent) => void): Promise<() => void> {
      const channel = store.keysOfRequest(id)?.events(id);
      if (channel === undefined) return () => {};
      return subscribe({ redis, channels }, channel, (message) => listener(decodeMessage(message)));
    },
    /**
     * Calls the listener when the queue, the workers or the webhooks of a model changed, with the dispatchable state if
     * the message holds it. Poll slowly as well, since messages may be lost. Resolves with the function that
     * unsubscribes.
     */
    async listen(
      model: string,
      listener: (dispatchable?: Dispatchable) => void,
      channel: 'wakeup' | 'webhooks' = 'wakeup',
    ): Promise<() => void> {
      const onMessage = (message: Buffer): void => listener(decodeWakeup(message.toString()));
      const stopMessages = await subscribe({ redis, channels }, store.keysOf(model)[channel], onMessage);
      const stopReconnects = onReconnect(() => listener());
      return () => {
        stopReconnects();
        stopMessages();
      };
    },
    onReconnect,
    /** Number of channels with a listener. */
    get size(): number {
      return channels.size;
    },
    close: (): void => redis.disconnect(),
  };
}

/** Resolves when Redis has confirmed the subscription, with the function that unsubscribes. */
async function subscribe(
  { redis, channels }: { redis: RedisClient; channels: Map<string, Channel> },
  name: string,
  listener: MessageListener,
): Promise<() => void> {
  let channel = channels.get(name);
  if (channel === undefined) {
    const confirmed = redis.subscribe(name).catch((error: unknown) => {
      // Otherwise all later listeners would get this rejection.
      channels.delete(name);
      throw error;
    });
    channel = { listeners: new Set(), confirmed };
    channels.set(name, channel);
  }
  const { listeners, confirmed } = channel;
  listeners.add(listener);
  await confirmed;
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    channels.delete(name);
    // Fails only if the connection is closed, and then there are no subscriptions left.
    redis.unsubscribe(name).catch(() => {});
  };
}

function onResubscribed(redis: RedisClient, listener: () => void): void {
  let wasReady = false;
  // ioredis resubscribes on `ready`; `setImmediate` runs the listener after that.
  redis.on('ready', () => {
    if (wasReady) setImmediate(listener);
    wasReady = true;
  });
  // A Cluster subscribes at one node and moves to another when that is lost. Any lost node may have been that one.
  if (redis instanceof Cluster) redis.on('-node', () => setImmediate(listener));
}

/** Decodes a published message: `<sequence> <body>\n<bytes>`. */
function decodeMessage(message: Buffer): StoredEvent {
  const space = message.indexOf(0x20);
  const newline = message.indexOf(0x0a, space);
  return decodeEvent(
    Number(message.toString('latin1', 0, space)),
    message.toString('utf8', space + 1, newline),
    message.subarray(newline + 1),
  );
}
