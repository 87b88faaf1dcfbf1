import { modelOfRequestId, type RequestSnapshot, type RequestState } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { listShards, shardsOf } from '../models/model-registry.ts';
import { decodeProgress } from './read-request.ts';

export interface ListRequestsOptions {
  owner: string;
  /** All models if absent. */
  model?: string | undefined;
  /** All states if empty. */
  states?: readonly RequestState[];
  /** Time of admission, ms since the epoch: at or after `fromMs`, before `untilMs`. */
  fromMs?: number | undefined;
  untilMs?: number | undefined;
  /** `next` of the previous page. */
  cursor?: ListPosition | undefined;
  /** Max. requests to return. */
  limit: number;
}

/** A place between two requests of a list, which is ordered by time of admission and then by id, latest first. */
export interface ListPosition {
  createdAtMs: number;
  id: string;
}

/** A request in a list. */
export interface ListedRequest extends Pick<
  RequestSnapshot,
  | 'id'
  | 'model'
  | 'owner'
  | 'kind'
  | 'state'
  | 'isCanceling'
  | 'isPinned'
  | 'createdAtMs'
  | 'startedAtMs'
  | 'endedAtMs'
  | 'expiresAtMs'
  | 'outputCount'
  | 'outputs'
  | 'error'
> {
  /** First characters of the prompt; absent if there is none, or prompts are not retained. */
  excerpt: string | undefined;
}

/** `next`: position of the next page; undefined after the last one. */
export interface RequestPage {
  requests: ListedRequest[];
  next: ListPosition | undefined;
}

/** Max. requests that a page examines per shard. A page may therefore have fewer requests than `limit`, or none. */
const maxExamined = 500;

/**
 * Lists stored requests of an owner, latest first. Three round trips. Its cost grows with `limit` and the number of
 * shards, not with that of stored requests.
 */
export async function listRequests(store: StoreConnection, options: ListRequestsOptions): Promise<RequestPage> {
  const { model, limit, owner } = options;
  const shards = model === undefined ? await listShards(store) : await shardsOf(store, model);
  const found = await Promise.all(shards.map((shard) => findInShard(store, shard, options)));
  // Nothing is known about requests below the last one that an unfinished shard examined.
  const ends = found.flatMap(({ end }) => end ?? []).toSorted(byLatest);
  const positions = found
    .flatMap(({ positions }) => positions)
    .filter((position) => ends[0] === undefined || byLatest(position, ends[0]) <= 0)
    .toSorted(byLatest);
  const page = positions.slice(0, limit);
  const requests = await Promise.all(page.map(({ id }) => readListed(store, id, owner)));
  return {
    // Those that expired between two round trips are missing.
    requests: requests.filter((request) => request !== undefined),
    next: positions.length > limit ? page.at(-1) : ends[0],
  };
}

function byLatest(left: ListPosition, right: ListPosition): number {
  return right.createdAtMs - left.createdAtMs || (left.id > right.id ? -1 : Number(left.id !== right.id));
}

/** `end`: the last request that was examined; undefined if there are no more. */
async function findInShard(
  store: StoreConnection,
  shard: string,
  { owner, states = [], fromMs, untilMs, cursor, limit }: ListRequestsOptions,
): Promise<{ positions: ListPosition[]; end: ListPosition | undefined }> {
  const isPastCursor = cursor !== undefined && cursor.createdAtMs < (untilMs ?? Infinity);
  const before = isPastCursor ? cursor.createdAtMs : untilMs === undefined ? '+inf' : `(${untilMs}`;
  const values = [owner, before, isPastCursor ? cursor.id : '', fromMs ?? '-inf', states.join(','), limit, maxExamined];
  const reply = (await runScript(store, 'requests/list-requests', store.keysOf(shard), values)) as [0 | 1, ...string[]];
  const [hasMore, ...rest] = reply;
  const [last, ...positions] = Array.from({ length: rest.length / 2 }, (_, at) => ({
    id: rest[2 * at]!,
    createdAtMs: Number(rest[2 * at + 1]),
  }));
  return { positions, end: hasMore === 1 ? last : undefined };
}

/** Reads a request without its input; undefined if there is no such request of this owner. One round trip. */
export async function readListed(
  store: StoreConnection,
  id: string,
  owner: string,
): Promise<ListedRequest | undefined> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return undefined;
  const fields = await store.redis.hgetall(keys.request(id));
  const { kind, outputs, excerpt } = fields;
  if (kind === undefined || fields['owner'] !== owner) return undefined;
  const model = modelOfRequestId(id)!;
  return { ...decodeProgress(fields), id, model, owner, kind, outputCount: Number(outputs), excerpt };
}
