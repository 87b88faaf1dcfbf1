/** Requests as custom modules receive them: one output each. */
import type { RowRequest } from '@darkroom/core';
import { type ImageInput, seedOfImage, type UpstreamTextInput } from '@darkroom/kinds';
import { withInlineImages } from '../calls/inline-images.ts';
import { seedOfText } from '../upstream/text-chunks.ts';
import type { OwnImageRequest, OwnTextRequest } from './own-executor.ts';

export function textRequest(
  given: UpstreamTextInput,
  index: number,
  attachments?: RowRequest['attachments'],
): OwnTextRequest {
  const { params, maxTokens, n, logprobs } = withInlineImages(given, attachments);
  const input = { params, maxTokens, n, ...(logprobs !== undefined && { logprobs }) };
  return { index, seed: seedOfText(given, index), input };
}

export function imageRequest(input: ImageInput, index: number): OwnImageRequest {
  return { index, seed: seedOfImage(input.seed, index), input };
}
