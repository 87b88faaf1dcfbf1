import { type Clock, DarkroomError, type PictureInput, type RequestStatus } from '@darkroom/core';
import { type MeasuredWorker, readPaces } from '@darkroom/store';
import { type Cached, createCached } from '../submit/cached.ts';
import { type EndEstimate, estimateEnd } from './estimate-end.ts';
import type { AskStore } from '../server/store-guard.ts';

/** When a request will have ended; undefined when that cannot be known. Asks Redis once a second for each model. */
export type EstimateEnd = (request: EstimatedPicture) => Promise<EndEstimate | undefined>;

type EstimatedPicture = Pick<
  RequestStatus,
  'model' | 'state' | 'isPossible' | 'cost' | 'costAhead' | 'outputCount' | 'slots' | 'done' | 'input'
>;

const maxAgeMs = 1000;

export function createEndEstimator(askStore: AskStore, clock: Clock): EstimateEnd {
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
    const outputSteps = (request.input as PictureInput).numInferenceSteps;
    try {
      return estimateEnd({ ...request, outputSteps }, await pacesOf(request.model));
    } catch (error) {
      // It is a hint: nobody's request fails for want of it.
      if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
      return undefined;
    }
  };
}
