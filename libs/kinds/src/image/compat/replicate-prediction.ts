import { isoTime, isTerminalState, type RequestSnapshot, urlBelow } from '@darkroom/core';
import type { ImageAttachment } from '../image-input.ts';
import { inputUrl, type StoredImageInput } from '../image-views.ts';
import { progressBar, secondsBetween } from './progress-bar.ts';

/** Source of a prediction. Only the required fields are present if the request could not be read again. */
export type PredictionSource = Pick<RequestSnapshot, 'id' | 'model' | 'state' | 'input' | 'createdAtMs'> &
  Partial<RequestSnapshot>;

/** Owner in model names. Our models have no owners: routes accept any and return this one. */
export const replicateOwner = 'darkroom';

/** Replicate's statuses by our states. `expired` is `failed`: the client would poll an `aborted` prediction forever. */
const statuses = {
  queued: 'starting',
  running: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
  expired: 'failed',
} as const;

/**
 * Returns a request as Replicate's prediction object, for responses and webhooks.
 *
 * @param options.root the URL at which the client reaches the API.
 * @param options.output URLs of the finished images; null before success.
 * @param options.hasStream whether to include the stream's URL, which the client opens without a key.
 */
export function replicatePrediction(
  request: PredictionSource,
  { root, output, hasStream }: { root: string; output: readonly string[] | null; hasStream: boolean },
) {
  const { id, model, state, createdAtMs, startedAtMs, endedAtMs } = request;
  const input = request.input as StoredImageInput;
  const url = urlBelow(root, `/replicate/v1/predictions/${id}`);
  const metrics = {
    predict_time: secondsBetween(startedAtMs, endedAtMs),
    total_time: secondsBetween(createdAtMs, endedAtMs),
  };
  return {
    id,
    model: `${replicateOwner}/${model}`,
    version: model,
    status: statuses[state],
    input: inputOf(root, id, input),
    output,
    logs: logsOf(request, input.seed),
    error: predictionError(request),
    metrics: isTerminalState(state) ? metrics : {},
    created_at: isoTime(createdAtMs),
    started_at: isoTime(startedAtMs),
    completed_at: isoTime(endedAtMs),
    source: 'api',
    data_removed: false,
    urls: { get: url, cancel: `${url}/cancel`, ...(hasStream && { stream: `${url}/stream` }) },
  };
}

/** Returns inputs that reproduce the same images; without prompts if they are not stored. */
function inputOf(root: string, id: string, input: StoredImageInput) {
  // Input images are deleted together with prompts.
  const isStored = input.prompt !== undefined;
  const urlOf = (name: ImageAttachment): string => urlBelow(root, inputUrl(id, name));
  return {
    prompt: input.prompt,
    negative_prompt: input.negativePrompt,
    width: input.width,
    height: input.height,
    num_outputs: input.n,
    num_inference_steps: input.numInferenceSteps,
    guidance_scale: input.guidanceScale,
    seed: input.seed,
    scheduler: input.scheduler,
    output_format: input.outputFormat,
    output_quality: input.outputCompression,
    image: input.image && isStored ? urlOf('image') : undefined,
    mask: input.mask && isStored ? urlOf('mask') : undefined,
    prompt_strength: input.strength,
    // Replicate's format has one adapter; requests of other routes may have more.
    ...(input.loras && { lora_weights: input.loras[0]!.id, lora_scale: input.loras[0]!.scale }),
  };
}

/** Returns logs in cog's format; the client parses progress from the last line. */
function logsOf({ done = 0, total = 0, outputs = [] }: PredictionSource, seed: number): string {
  if (total === 0) return '';
  const found = outputs.filter(({ nsfw }) => nsfw === true);
  const notes = found.map(({ index }) => `NSFW content detected in image ${index}\n`);
  return `Using seed: ${seed}\n${notes.join('')}${progressBar(done, total)}\n`;
}

export function predictionError({ state, error }: Pick<PredictionSource, 'state' | 'error'>): string | null {
  if (state === 'failed') return error?.message ?? 'The prediction failed.';
  return state === 'expired' ? 'The prediction did not end in time.' : null;
}
