import type { RequestStatus } from '@darkroom/core';
import type { ModelStats, PoolPace } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { isStoreAway } from '../server/store-guard.ts';

/** Seconds from now, from the 10th to the 90th percentile of what was measured. */
export interface EndEstimate {
  min: number;
  max: number;
}

export type EstimatedRequest = Pick<
  RequestStatus,
  'state' | 'cost' | 'costAhead' | 'outputCount' | 'slots' | 'done'
> & {
  /** Steps of one output. */
  outputSteps: number;
};

/**
 * When a request will have ended, from how fast the workers of its model have been of late. Undefined for a request that
 * has ended.
 *
 * A waiting request ends when all that is ahead of it, under way and its own has been worked off by all workers together:
 * rows join as places become free, so the workers are never idle in between. Nor can it end before its own steps have
 * been taken one after the other.
 *
 * @param loadMs what has to be waited for first: a model that is not in memory.
 */
export function estimateEnd(request: EstimatedRequest, pace: PoolPace, loadMs = 0): EndEstimate | undefined {
  if (request.state !== 'queued' && request.state !== 'running') return undefined;
  const own = ownMs(request, pace);
  if (request.state === 'running') return inSeconds(own);
  const work = request.costAhead + request.cost + pace.remainingCost;
  const { fast, slow } = pace.costPerMs;
  return inSeconds({ min: loadMs + Math.max(own.min, work / fast), max: loadMs + own.max + work / slow });
}

/** Its remaining steps one after the other; outputs beyond a worker's places go after the first ones. */
function ownMs(
  { outputCount, slots, outputSteps, done }: EstimatedRequest,
  { capacity, stepMs }: PoolPace,
): EndEstimate {
  const steps = (Math.max(0, outputCount * outputSteps - done) / outputCount) * Math.ceil(slots / capacity);
  return { min: steps * stepMs.fast, max: steps * stepMs.slow };
}

/** Tenths of a second; the upper end is rounded up. */
function inSeconds({ min, max }: EndEstimate): EndEstimate {
  return { min: Math.floor(min / 100) / 10, max: Math.ceil(max / 100) / 10 };
}

type OpenRequest = Omit<EstimatedRequest, 'outputSteps'> &
  Pick<RequestStatus, 'model' | 'kind' | 'isPossible' | 'input'>;

/** What is to be waited for where all workers sleep. */
function loadMsOf({ workers, loadMs }: ModelStats): number | undefined {
  return workers.idle + workers.busy === 0 ? loadMs : undefined;
}

/** When a request will have ended; undefined when that cannot be known. */
export async function endOf({ pools, kinds }: ApiContext, request: OpenRequest): Promise<EndEstimate | undefined> {
  const kind = kinds.of(request.kind);
  // Workers may be there, and the model paused.
  const isMoving = request.state === 'running' || (request.state === 'queued' && request.isPossible);
  if (kind === undefined || !isMoving) return undefined;
  const outputSteps = kind.stepsOf(request.input);
  try {
    const pool = (await pools.get()).get(request.model);
    return pool?.pace && estimateEnd({ ...request, outputSteps }, pool.pace, loadMsOf(pool));
  } catch (error) {
    // It is a hint: nobody's request fails for want of it.
    if (!isStoreAway(error)) throw error;
    return undefined;
  }
}
