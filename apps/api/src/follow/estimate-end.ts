import type { RequestState } from '@darkroom/core';
import type { MeasuredWorker } from '@darkroom/store';

/** Seconds from now, from the 10th to the 90th percentile of what was measured. */
export interface EndEstimate {
  min: number;
  max: number;
}

/** What an estimate needs to know of a request. */
export interface EstimatedRequest {
  state: RequestState;
  cost: number;
  /** Of the requests that will be dispatched before it. */
  costAhead: number;
  /** How many outputs it has, and slots they take at once. */
  outputCount: number;
  slots: number;
  /** Steps of one output. */
  outputSteps: number;
  /** Steps done over all outputs. */
  done: number;
}

/**
 * When a request will have ended, from how fast the workers of its model have been of late. Undefined when no live
 * worker has taken a step yet, and for a request that has ended.
 *
 * A waiting request ends when all that is ahead of it, under way and its own has been worked off by all workers together:
 * rows join as places become free, so the workers are never idle in between. Nor can it end before its own steps have
 * been taken one after the other.
 */
export function estimateEnd(request: EstimatedRequest, workers: readonly MeasuredWorker[]): EndEstimate | undefined {
  if (workers.length === 0 || (request.state !== 'queued' && request.state !== 'running')) return undefined;
  const own = ownMs(request, workers);
  if (request.state === 'running') return inSeconds(own);
  const work = workers.reduce((sum, { remainingCost }) => sum + remainingCost, request.costAhead + request.cost);
  const fastRate = workers.reduce((sum, { costMs }) => sum + 1 / costMs.fast, 0);
  const slowRate = workers.reduce((sum, { costMs }) => sum + 1 / costMs.slow, 0);
  return inSeconds({ min: Math.max(own.min, work / fastRate), max: own.max + work / slowRate });
}

/** Its remaining steps one after the other; outputs beyond a worker's places go after the first ones. */
function ownMs(
  { outputCount, slots, outputSteps, done }: EstimatedRequest,
  workers: readonly MeasuredWorker[],
): EndEstimate {
  const places = Math.max(...workers.map(({ capacity }) => capacity));
  const steps = (Math.max(0, outputCount * outputSteps - done) / outputCount) * Math.ceil(slots / places);
  return {
    min: steps * Math.min(...workers.map(({ stepMs }) => stepMs.fast)),
    max: steps * Math.max(...workers.map(({ stepMs }) => stepMs.slow)),
  };
}

/** Tenths of a second; the upper end is rounded up. */
function inSeconds({ min, max }: EndEstimate): EndEstimate {
  return { min: Math.floor(min / 100) / 10, max: Math.ceil(max / 100) / 10 };
}
