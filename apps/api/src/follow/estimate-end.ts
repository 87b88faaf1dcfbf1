import type { RequestSnapshot } from '@darkroom/core';
import { isServed, type ModelStats, type PoolThroughput } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';

/** Maximum Retry-After, s: OpenAI's SDKs ignore a value of 60 or more and retry sooner. */
const maxRetryS = 30;

/** Seconds from now, at the 10th and 90th percentile of the measured throughput. */
export interface EndEstimate {
  min: number;
  max: number;
}

export type EstimatedRequest = Pick<
  RequestSnapshot,
  'state' | 'cost' | 'costAhead' | 'outputCount' | 'slots' | 'done'
> &
  Partial<Pick<RequestSnapshot, 'loadingMs'>> & {
    /** Steps of one output. */
    outputSteps: number;
  };

/**
 * Estimates when a request ends, from the recent throughput of its model's workers; undefined once it has ended. A
 * waiting request takes the cost ahead, running and its own at the throughput of all workers, and at least its own
 * steps one after the other. Outputs that may end early are scaled by their recent usual share.
 *
 * @param pool `loadMs`: duration of the model's last load; `isAsleep`: no worker has the model in memory.
 */
export function estimateEnd(
  request: EstimatedRequest,
  pace: PoolThroughput,
  { loadMs, isAsleep }: { loadMs?: number | undefined; isAsleep: boolean } = { isAsleep: false },
): EndEstimate | undefined {
  if (request.state !== 'queued' && request.state !== 'running') return undefined;
  const ownTime = remainingStepsMs(request, pace);
  if (request.state === 'running') {
    const { loadingMs = 0 } = request;
    // Of the reported loading time only the load itself is certain: other waits may end at once.
    return inSeconds({ min: ownTime.min + Math.min(loadingMs, loadMs ?? loadingMs), max: ownTime.max + loadingMs });
  }
  const loadFirstMs = (isAsleep && loadMs) || 0;
  const work = request.costAhead + request.cost + pace.remainingCost;
  const { costPerMs, share } = pace;
  return inSeconds({
    min: loadFirstMs + Math.max(ownTime.min, (work * share.fast) / costPerMs.fast),
    max: loadFirstMs + ownTime.max + (work * share.slow) / costPerMs.slow,
  });
}

/**
 * Returns the time of the remaining steps, one after the other; outputs beyond a worker's slots run after the first.
 */
function remainingStepsMs(
  { outputCount, slots, outputSteps, done }: EstimatedRequest,
  { capacity, stepMs, share }: PoolThroughput,
): EndEstimate {
  const all = outputCount * outputSteps;
  const rounds = Math.ceil(slots / capacity) / outputCount;
  const minSteps = Math.max(0, all * share.fast - done);
  // A text beyond the usual share may run up to its limit.
  const maxSteps = Math.max(0, (done < all * share.slow ? all * share.slow : all) - done);
  return { min: minSteps * rounds * stepMs.fast, max: maxSteps * rounds * stepMs.slow };
}

/** Converts ms to tenths of a second; rounds the maximum up. */
function inSeconds({ min, max }: EndEstimate): EndEstimate {
  return { min: Math.floor(min / 100) / 10, max: Math.ceil(max / 100) / 10 };
}

type OpenRequest = Omit<EstimatedRequest, 'outputSteps'> &
  Pick<RequestSnapshot, 'model' | 'kind' | 'isPossible' | 'input'>;

/** Estimates when a request ends; undefined if no worker has measured its throughput, or none may run it. */
export async function estimateRequestEnd(
  { pools, kinds }: ApiContext,
  request: OpenRequest,
): Promise<EndEstimate | undefined> {
  const kind = kinds.of(request.kind);
  // A queued request of a paused model is not possible even with workers.
  const isMoving = request.state === 'running' || (request.state === 'queued' && request.isPossible);
  if (kind === undefined || !isMoving) return undefined;
  const outputSteps = kind.stepsOf(request.input);
  const pool = await poolOf({ pools }, request.model);
  if (pool?.pace === undefined) return undefined;
  const { pace, loadMs, workers } = pool;
  const costAhead = request.costAhead * waitingShardsOf(pool);
  return estimateEnd({ ...request, costAhead, outputSteps }, pace, {
    loadMs,
    isAsleep: workers.idle + workers.busy === 0,
  });
}

/**
 * Returns the shortest time in which the workers can drain a queue of this cost, s, from 1 to `maxRetryS`; undefined
 * without measurements. A client that retries a full queue after this time leaves no worker idle.
 */
export async function queueDrainSeconds(context: ApiContext, model: string, cost: number): Promise<number | undefined> {
  const pool = await poolOf(context, model);
  if (pool?.pace === undefined) return undefined;
  const { pace } = pool;
  return Math.min(
    maxRetryS,
    Math.max(1, Math.floor((cost * waitingShardsOf(pool) + pace.remainingCost) / pace.costPerMs.fast / 1000)),
  );
}

/** Returns the number of shards with waiting requests: the cost ahead counts one shard, and all share the workers. */
function waitingShardsOf({ waitingShards }: ModelStats): number {
  return Math.max(1, waitingShards);
}

/**
 * Returns true if a worker of any shard of the model may run a request. `isPossible`: one of the request's own shard
 * may.
 */
export async function isPossibleAnywhere(
  context: Pick<ApiContext, 'pools'>,
  { model, isPossible }: Pick<RequestSnapshot, 'model' | 'isPossible'>,
): Promise<boolean> {
  if (isPossible) return true;
  const pool = await poolOf(context, model);
  if (pool === undefined || pool.shards === 1 || pool.isPaused) return false;
  return isServed(pool);
}

async function poolOf({ pools }: Pick<ApiContext, 'pools'>, model: string): Promise<ModelStats | undefined> {
  try {
    return (await pools.get()).get(model);
  } catch (error) {
    // Estimates are optional: no request fails because Redis is unavailable for them.
    if (!isStoreUnavailable(error)) throw error;
    return undefined;
  }
}
