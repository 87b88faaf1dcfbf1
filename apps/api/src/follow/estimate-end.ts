import type { RequestStatus } from '@darkroom/core';
import type { ModelStats, PoolPace } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { isStoreAway } from '../server/store-guard.ts';

/** Nobody is sent away for longer, s: OpenAI's SDKs come sooner where a server asks for a minute. */
const maxRetryS = 30;

/** Seconds from now, from the 10th to the 90th percentile of what was measured. */
export interface EndEstimate {
  min: number;
  max: number;
}

export type EstimatedRequest = Pick<RequestStatus, 'state' | 'cost' | 'costAhead' | 'outputCount' | 'slots' | 'done'> &
  Partial<Pick<RequestStatus, 'loadingMs'>> & {
    /** Steps of one output. */
    outputSteps: number;
  };

/**
 * When a request will have ended, from how fast the workers of its model have been of late. Undefined for a request that
 * has ended.
 *
 * A waiting request ends when all that is ahead of it, under way and its own has been worked off by all workers together:
 * rows join as places become free, so the workers are never idle in between. Nor can it end before its own steps have
 * been taken one after the other. Where outputs end before they come as far as they might, so much less is counted as was
 * usual of late.
 *
 * @param pool `loadMs`: what the last load of the model took; `isAsleep`: nobody has it in memory.
 */
export function estimateEnd(
  request: EstimatedRequest,
  pace: PoolPace,
  { loadMs, isAsleep }: { loadMs?: number | undefined; isAsleep: boolean } = { isAsleep: false },
): EndEstimate | undefined {
  if (request.state !== 'queued' && request.state !== 'running') return undefined;
  const own = ownMs(request, pace);
  if (request.state === 'running') {
    const { loadingMs = 0 } = request;
    // What it may wait for beside the load itself may be over at once.
    return inSeconds({ min: own.min + Math.min(loadingMs, loadMs ?? loadingMs), max: own.max + loadingMs });
  }
  const firstMs = (isAsleep && loadMs) || 0;
  const work = request.costAhead + request.cost + pace.remainingCost;
  const { costPerMs, share } = pace;
  return inSeconds({
    min: firstMs + Math.max(own.min, (work * share.fast) / costPerMs.fast),
    max: firstMs + own.max + (work * share.slow) / costPerMs.slow,
  });
}

/** Its remaining steps one after the other; outputs beyond a worker's places go after the first ones. */
function ownMs(
  { outputCount, slots, outputSteps, done }: EstimatedRequest,
  { capacity, stepMs, share }: PoolPace,
): EndEstimate {
  const all = outputCount * outputSteps;
  const turns = Math.ceil(slots / capacity) / outputCount;
  const least = Math.max(0, all * share.fast - done);
  // What has come further than is usual may come as far as it can.
  const most = Math.max(0, (done < all * share.slow ? all * share.slow : all) - done);
  return { min: least * turns * stepMs.fast, max: most * turns * stepMs.slow };
}

/** Tenths of a second; the upper end is rounded up. */
function inSeconds({ min, max }: EndEstimate): EndEstimate {
  return { min: Math.floor(min / 100) / 10, max: Math.ceil(max / 100) / 10 };
}

type OpenRequest = Omit<EstimatedRequest, 'outputSteps'> &
  Pick<RequestStatus, 'model' | 'kind' | 'isPossible' | 'input'>;

/** When a request will have ended; undefined when that cannot be known. */
export async function endOf({ pools, kinds }: ApiContext, request: OpenRequest): Promise<EndEstimate | undefined> {
  const kind = kinds.of(request.kind);
  // Workers may be there, and the model paused.
  const isMoving = request.state === 'running' || (request.state === 'queued' && request.isPossible);
  if (kind === undefined || !isMoving) return undefined;
  const outputSteps = kind.stepsOf(request.input);
  const pool = await poolOf({ pools }, request.model);
  if (pool?.pace === undefined) return undefined;
  const { pace, loadMs, workers } = pool;
  const costAhead = request.costAhead * linesOf(pool);
  return estimateEnd({ ...request, costAhead, outputSteps }, pace, {
    loadMs,
    isAsleep: workers.idle + workers.busy === 0,
  });
}

/**
 * The soonest that a queue which costs so much can have been worked off, s: 1 to a bound; undefined when that cannot be known.
 * Who comes again by then to a queue that was full leaves no worker without work.
 */
export async function workedOffS(context: ApiContext, model: string, cost: number): Promise<number | undefined> {
  const pool = await poolOf(context, model);
  if (pool?.pace === undefined) return undefined;
  const { pace } = pool;
  return Math.min(
    maxRetryS,
    Math.max(1, Math.floor((cost * linesOf(pool) + pace.remainingCost) / pace.costPerMs.fast / 1000)),
  );
}

/** What is ahead of a request was counted in its shard: so many of them have about as much for the same workers. */
function linesOf({ waitingShards }: ModelStats): number {
  return Math.max(1, waitingShards);
}

/** Whether a worker may take a request, who may be in another shard of its model by now. `isPossible`: whether one of its own shard may. */
export async function isPossibleAnywhere(
  context: Pick<ApiContext, 'pools'>,
  { model, isPossible }: Pick<RequestStatus, 'model' | 'isPossible'>,
): Promise<boolean> {
  if (isPossible) return true;
  const pool = await poolOf(context, model);
  if (pool === undefined || pool.shards === 1 || pool.isPaused) return false;
  const { idle, busy, asleep, loading } = pool.workers;
  return idle + busy + asleep + loading > 0;
}

async function poolOf({ pools }: Pick<ApiContext, 'pools'>, model: string): Promise<ModelStats | undefined> {
  try {
    return (await pools.get()).get(model);
  } catch (error) {
    // It is a hint: nobody's request fails for want of it.
    if (!isStoreAway(error)) throw error;
    return undefined;
  }
}
