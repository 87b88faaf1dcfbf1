/**
 * What a process hears of Redis over one subscriber connection, however many listeners. Redis' pub/sub forgets what it could
 * not deliver, so a message is a wake-up and the stored state the truth.
 */
import type { Dispatchable, RequestEvent } from '@darkroom/core';
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
  onSubscriptionsBack(redis, () => reconnectListeners.forEach((listener) => listener()));
  redis.on('messageBuffer', (name: Buffer, message: Buffer) => {
    for (const listener of channels.get(name.toString())?.listeners ?? []) listener(message);
  });

  /** Called after every re-established connection, when all subscriptions are back. */
  function onReconnect(listener: () => void): () => void {
    reconnectListeners.add(listener);
    return () => reconnectListeners.delete(listener);
  }
  return {
    /**
     * Live events of a request. They may have gaps: compare `sequence`, fill with `readEvents`. Resolves once events are coming; the
     * result ends it. An id that is none of ours never gets any.
     */
    async subscribe(id: string, listener: (event: RequestEvent) => void): Promise<() => void> {
      const channel = store.keysOfRequest(id)?.events(id);
      if (channel === undefined) return () => {};
      return subscribe({ redis, channels }, channel, (message) => listener(decodeMessage(message)));
    },
    /** Told when something of a model has changed: for formers its queue or workers, with what they would see where that is known. Keep a slow tick beside it. */
    async listen(
      model: string,
      listener: (seen?: Dispatchable) => void,
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
    /** Channels with a listener. */
    get size(): number {
      return channels.size;
    },
    close: (): void => redis.disconnect(),
  };
}

/** Resolves when Redis has confirmed the subscription; the result ends it. */
async function subscribe(
  { redis, channels }: { redis: RedisClient; channels: Map<string, Channel> },
  name: string,
  listener: MessageListener,
): Promise<() => void> {
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
  const { listeners, confirmed } = channel;
  listeners.add(listener);
  await confirmed;
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    channels.delete(name);
    // Only a closed connection refuses, and that has no subscriptions left.
    redis.unsubscribe(name).catch(() => {});
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

/** From a published message: `<sequence> <body>\n<preview>`. */
function decodeMessage(message: Buffer): RequestEvent {
  const space = message.indexOf(0x20);
  const newline = message.indexOf(0x0a, space);
  return decodeEvent(
    Number(message.toString('latin1', 0, space)),
    message.toString('utf8', space + 1, newline),
    message.subarray(newline + 1),
  );
}
