/**
 * One subscriber connection for a whole process, however many listeners. Redis' pub/sub forgets what it could not
 * deliver, so a listener treats a message as a wake-up and the stored state as the truth; `onReconnect` tells it when
 * messages may have been lost.
 */
import { Cluster } from 'ioredis';
import type { RedisClient } from './open-redis.ts';
import type { StoreConnection } from './store-connection.ts';

export type MessageListener = (message: Buffer) => void;

export interface Subscriber {
  /** Resolves when Redis has confirmed the subscription; the result ends it. */
  subscribe(channel: string, listener: MessageListener): Promise<() => void>;
  /** Called after every re-established connection, when all subscriptions are back. */
  onReconnect(listener: () => void): () => void;
  /** Channels with a listener. */
  readonly size: number;
  close(): void;
}

interface Channel {
  listeners: Set<MessageListener>;
  confirmed: Promise<unknown>;
}

export function createSubscriber(store: StoreConnection): Subscriber {
  const redis = store.duplicate();
  const channels = new Map<string, Channel>();
  const reconnectListeners = new Set<() => void>();
  onSubscriptionsBack(redis, () => reconnectListeners.forEach((listener) => listener()));
  redis.on('messageBuffer', (name: Buffer, message: Buffer) => {
    for (const listener of channels.get(name.toString())?.listeners ?? []) listener(message);
  });

  function leave(name: string, listener: MessageListener): void {
    const channel = channels.get(name);
    if (channel === undefined || !channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    channels.delete(name);
    // Only a closed connection refuses, and that has no subscriptions left.
    redis.unsubscribe(name).catch(() => {});
  }

  return {
    async subscribe(name, listener) {
      let channel = channels.get(name);
      if (channel === undefined) {
        const confirmed = redis.subscribe(name).catch((error: unknown) => {
          // Or all who come later would be told of this refusal.
          channels.delete(name);
          throw error;
        });
        channel = { listeners: new Set(), confirmed };
        channels.set(name, channel);
      }
      channel.listeners.add(listener);
      await channel.confirmed;
      return () => leave(name, listener);
    },
    onReconnect(listener) {
      reconnectListeners.add(listener);
      return () => reconnectListeners.delete(listener);
    },
    get size() {
      return channels.size;
    },
    close: () => redis.disconnect(),
  };
}

function onSubscriptionsBack(redis: RedisClient, listener: () => void): void {
  let wasReady = false;
  // ioredis has re-subscribed by the time of the next turn.
  redis.on('ready', () => {
    if (wasReady) setImmediate(listener);
    wasReady = true;
  });
  // A Cluster's subscriptions are with one of its nodes, and go to another when that is lost. Which one is not told.
  if (redis instanceof Cluster) redis.on('-node', () => setImmediate(listener));
}
