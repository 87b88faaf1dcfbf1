/**
 * The outbox of webhooks: a stream per model that emit-event.lua writes to in the same step as the event. A consumer
 * group gives each entry to one of any number of senders; what a sender took and did not drop is given out again.
 */
import { modelOfShard } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { decodeEvent } from '../events/read-events.ts';

/** An event that a webhook is to be told of. */
export type OutboxEntry = ReturnType<typeof decode>;

const group = 'senders';
/** One name for all: which of them holds an entry does not matter, and a dead one leaves no consumer behind. */
const consumer = 'sender';

type StreamEntry = [id: string, fields: string[]];

/**
 * At most `limit` entries that nobody else has, oldest first; what was taken `reclaimAfterMs` ago and not dropped is taken again, as
 * its taker has died. Drop them with `dropOutboxEntries` when they are safe elsewhere.
 */
export async function takeOutbox(
  { redis, keysOf }: StoreConnection,
  model: string,
  { limit, reclaimAfterMs }: { limit: number; reclaimAfterMs: number },
): Promise<OutboxEntry[]> {
  const stream = keysOf(model).webhooks;
  const take = () =>
    Promise.all([
      redis.xautoclaim(stream, group, consumer, reclaimAfterMs, '0-0', 'COUNT', limit),
      redis.xreadgroup('GROUP', group, consumer, 'COUNT', limit, 'STREAMS', stream, '>'),
    ]);
  const replies = await take().catch(async (error: unknown) => {
    if (!isReply(error, 'NOGROUP')) throw error;
    await redis.xgroup('CREATE', stream, group, '0', 'MKSTREAM').catch((failure: unknown) => {
      // Another sender was faster.
      if (!isReply(failure, 'BUSYGROUP')) throw failure;
    });
    return take();
  });
  const [reclaimed, read] = replies as [
    [next: string, entries: (StreamEntry | null)[]],
    [stream: string, entries: StreamEntry[]][] | null,
  ];
  const entries = [...reclaimed[1], ...(read?.[0]?.[1] ?? [])];
  // Null in old servers: it was cut off by the cap while somebody held it.
  return entries.filter((entry) => entry !== null).map((entry) => decode(model, entry));
}

/** Removes entries for good. Safe to call twice. */
export async function dropOutboxEntries(
  store: StoreConnection,
  model: string,
  entryIds: readonly string[],
): Promise<void> {
  if (entryIds.length === 0) return;
  const stream = store.keysOf(model).webhooks;
  await store.redis
    .multi()
    .xdel(stream, ...entryIds)
    .xack(stream, group, ...entryIds)
    .exec();
}

function decode(model: string, [entryId, pairs]: StreamEntry) {
  const [, id, , sequence, , owner, , url, , attempt, , body, , retryOf, , kind, ...texts] = pairs;
  return {
    entryId,
    requestId: id ?? '',
    model: modelOfShard(model),
    /** As in the request's envelope. */
    kind: kind ?? '',
    owner: owner ?? '',
    url: url ?? '',
    /** Deliveries of the request to a worker so far. */
    attempt: Number(attempt),
    event: decodeEvent(Number(sequence), body ?? ''),
    /** The failed request that this one asks again for. */
    retryOf: retryOf || undefined,
    texts: textsOf(texts),
  };
}

/** Of a success, what is text of its outputs by their indexes; nothing if it is long. */
function textsOf(pairs: readonly string[]): ReadonlyMap<number, string> {
  const names = pairs.filter((_, at) => at % 2 === 0);
  return new Map(names.map((name, at) => [Number(name.slice('text:'.length)), pairs[2 * at + 1]!]));
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
