import { pairUp } from '@darkroom/core';
import type { RequestSnapshot } from '@darkroom/core';
import type { StoredImageInput } from '../image-views.ts';
import { secondsBetween } from './progress-bar.ts';

/** Returns the result of a succeeded request in the format of fal's image models. `urls`: one per output. */
export function falResult(
  { outputs, startedAtMs, endedAtMs, input }: Pick<RequestSnapshot, 'outputs' | 'startedAtMs' | 'endedAtMs' | 'input'>,
  urls: readonly string[],
) {
  const { prompt, seed } = input as StoredImageInput;
  const images = pairUp(outputs, urls).map(([{ contentType, bytes, width, height }, url]) => ({
    url,
    width,
    height,
    content_type: contentType,
    file_size: bytes,
  }));
  const timings = { inference: secondsBetween(startedAtMs, endedAtMs) ?? null };
  const found = outputs.map(({ nsfw }) => nsfw);
  const flags = found.every((nsfw) => typeof nsfw === 'boolean') ? { has_nsfw_concepts: found } : {};
  return { images, seed, ...flags, prompt, timings };
}

/** Returns the error of a request in the format of fal's statuses; {} for other states. */
export function falFailure({ state, error }: Pick<RequestSnapshot, 'state' | 'error'>) {
  if (state === 'failed')
    return { error: error?.message ?? 'The request failed.', error_type: error?.code ?? 'internal' };
  if (state === 'canceled') return { error: 'The request was canceled.', error_type: 'client_cancelled' };
  if (state === 'expired') return { error: 'The request did not end in time.', error_type: 'request_timeout' };
  return {};
}
