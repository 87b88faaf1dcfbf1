/**
 * The webhook outbox: a stream per shard, written by emit-event.lua in the same script as the event. A consumer group
 * gives each entry to one sender; entries that a sender took and did not drop are given out again.
 */
import { modelOfShard, type OutputInfo, type WebhookView } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { decodeEvent } from '../events/read-events.ts';

/** An event that must be delivered to a webhook. */
export type OutboxEntry = ReturnType<typeof decode>;

const group = 'senders';
/** One consumer name for all senders: entries are reclaimed by age alone, and dead senders leave no consumer behind. */
const consumer = 'sender';

type StreamEntry = [id: string, fields: string[]];

/**
 * Takes at most `limit` entries that no other sender has, oldest first, and reclaims those that were taken
 * `reclaimAfterMs` ago and not dropped, as their sender has died. Call `dropOutboxEntries` once they are stored
 * elsewhere.
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
    // Create the group only after the first event: no keys for models without webhooks or forgotten models.
    if ((await redis.exists(stream)) === 0) return [[], null];
    await redis.xgroup('CREATE', stream, group, '0', 'MKSTREAM').catch((failure: unknown) => {
      // Another sender was faster.
      if (!isReply(failure, 'BUSYGROUP')) throw failure;
    });
    return take();
  });
  const [reclaimed, read] = replies as [
    [next?: string, entries?: (StreamEntry | null)[]],
    [stream: string, entries: StreamEntry[]][] | null,
  ];
  const entries = [...(reclaimed[1] ?? []), ...(read?.[0]?.[1] ?? [])];
  // Old servers return null for an entry that was trimmed by the cap while a sender held it.
  return entries.filter((entry) => entry !== null).map((entry) => decode(model, entry));
}

/** Deletes entries. Safe to call twice. */
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
  const { id, sequence, owner, url, attempt, body, retryOf, kind, view, shown, ...texts } = fieldsOf(pairs);
  return {
    entryId,
    requestId: id ?? '',
    model: modelOfShard(model),
    /** Kind of work, as in the request's envelope. */
    kind: kind ?? '',
    owner: owner ?? '',
    url: url ?? '',
    /** Deliveries of the request to a worker so far. */
    attempt: Number(attempt),
    event: decodeEvent(Number(sequence), body ?? ''),
    /** The failed request that this one retries. */
    retryOf: retryOf || undefined,
    /** Format of another API; absent for our own. `shown`: the request as it was at the event. */
    view: view ? { ...(JSON.parse(view) as WebhookView), shown: shownOf(shown) } : undefined,
    texts: textsOf(texts),
  };
}

function shownOf(json = '{}') {
  const { createdAtMs, startedAtMs, done, total, ...outputs } = JSON.parse(json) as Record<string, string>;
  return {
    createdAtMs: numberOf(createdAtMs),
    startedAtMs: numberOf(startedAtMs),
    done: numberOf(done),
    total: numberOf(total),
    outputs: Object.values(outputs)
      .map((output) => JSON.parse(output) as OutputInfo)
      .toSorted((left, right) => left.index - right.index),
  };
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function fieldsOf(pairs: readonly string[]): Readonly<Record<string, string | undefined>> {
  const names = pairs.filter((_, at) => at % 2 === 0);
  return Object.fromEntries(names.map((name, at) => [name, pairs[2 * at + 1]]));
}

/** Returns the texts of a successful request by output index; empty if they are too long. */
function textsOf(fields: Readonly<Record<string, string | undefined>>): ReadonlyMap<number, string> {
  const texts = Object.entries(fields).filter(([name]) => name.startsWith('text:'));
  return new Map(texts.map(([name, text]) => [Number(name.slice('text:'.length)), text ?? '']));
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
