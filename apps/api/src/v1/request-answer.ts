import {
  imageView,
  isoTime,
  type PictureInput,
  promptCutView,
  type RequestStatus,
  seedOfPicture,
} from '@darkroom/core';
import type { z } from 'zod';
import type { EndEstimate } from '../follow/estimate-end.ts';
import { requestUrls } from '../http/urls.ts';
import type { imageSchema, requestSchema } from './api-schemas.ts';

export type ImageAnswer = z.infer<typeof imageSchema>;
export type RequestAnswer = z.infer<typeof requestSchema>;

/** Without prompts after the end, where they are not kept. */
export type StoredInput = Omit<PictureInput, 'prompt' | 'negativePrompt'> & Partial<PictureInput>;

/** A request as clients see it. */
export function requestAnswer(request: RequestStatus, eta: EndEstimate | undefined): RequestAnswer {
  const { id, model, done, total } = request;
  // Only this app's POST route writes requests, and it writes pictures.
  const input = request.input as StoredInput;
  return {
    request_id: id,
    status: request.state,
    is_canceling: request.isCanceling,
    model,
    created_at: isoTime(request.createdAtMs),
    started_at: isoTime(request.startedAtMs),
    ended_at: isoTime(request.endedAtMs),
    expires_at: isoTime(request.expiresAtMs),
    queue_position: request.queuePosition ?? null,
    ...(eta === undefined ? {} : { eta_seconds: eta }),
    is_possible: request.isPossible,
    attempts: request.attempts,
    step: done,
    total_steps: total,
    progress: progressOf(request),
    seed: input.seed,
    seeds: Array.from({ length: input.n }, (_value, index) => seedOfPicture(input.seed, index)),
    parameters: parametersOf(model, input),
    ...promptCutView(request.outputs),
    images: request.outputs.map((output) => imageView(id, output)),
    ...(request.error === undefined ? {} : { error: request.error }),
    ...(request.retryOf === undefined ? {} : { retry_of: request.retryOf }),
    ...(request.retriedAs === undefined ? {} : { retried_as: request.retriedAs }),
    urls: requestUrls(id),
  };
}

function progressOf({ state, done, total }: RequestStatus): number {
  if (state === 'succeeded') return 1;
  return total > 0 ? done / total : 0;
}

/** Everything that made the pictures, as a body that makes the same ones again. */
function parametersOf(model: string, input: StoredInput): RequestAnswer['parameters'] {
  return {
    model,
    prompt: input.prompt ?? null,
    negative_prompt: input.negativePrompt ?? null,
    size: `${input.width}x${input.height}`,
    n: input.n,
    num_inference_steps: input.numInferenceSteps,
    guidance_scale: input.guidanceScale,
    guidance_rescale: input.guidanceRescale,
    seed: input.seed,
    scheduler: input.scheduler,
    output_format: input.outputFormat,
    output_compression: input.outputCompression,
    preview: input.previewEvery === 0 ? 'off' : { every: input.previewEvery },
  };
}
