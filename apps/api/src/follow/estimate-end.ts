import { type Clock, DarkroomError, type RequestState, type RequestStatus } from '@darkroom/core';
import type { Kinds } from '@darkroom/kinds';
import { type MeasuredWorker, readPaces } from '@darkroom/store';
import { type Cached, createCached } from '../server/cached.ts';
import type { AskStore } from '../server/store-guard.ts';

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

/** When a request will have ended; undefined when that cannot be known. Asks Redis once a second for each model. */
export type EstimateEnd = (request: OpenRequest) => Promise<EndEstimate | undefined>;

type OpenRequest = Pick<
  RequestStatus,
  'model' | 'kind' | 'state' | 'isPossible' | 'cost' | 'costAhead' | 'outputCount' | 'slots' | 'done' | 'input'
>;

const maxAgeMs = 1000;

export function createEndEstimator(askStore: AskStore, clock: Clock, kinds: Kinds): EstimateEnd {
  const paces = new Map<string, Cached<MeasuredWorker[]>>();
  const pacesOf = (model: string): Promise<MeasuredWorker[]> => {
    let cached = paces.get(model);
    if (cached === undefined) {
      cached = createCached({ load: () => askStore((store) => readPaces(store, model)), maxAgeMs, clock });
      paces.set(model, cached);
    }
    return cached.get();
  };
  return async (request) => {
    if (request.state !== 'queued' && request.state !== 'running') return undefined;
    // Workers may be there, and the model paused.
    if (request.state === 'queued' && !request.isPossible) return undefined;
    const kind = kinds.of(request.kind);
    if (kind === undefined) return undefined;
    const outputSteps = kind.stepsOf(request.input);
    try {
      return estimateEnd({ ...request, outputSteps }, await pacesOf(request.model));
    } catch (error) {
      // It is a hint: nobody's request fails for want of it.
      if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
      return undefined;
    }
  };
}
