import type { PictureInput, RequestEnvelope } from '@darkroom/core';

/** What is kept of a request after its end on a server that does not keep prompts. */
export function withoutPrompts(envelope: RequestEnvelope<PictureInput>): RequestEnvelope {
  const { prompt: _prompt, negativePrompt: _negativePrompt, ...input } = envelope.input;
  return { ...envelope, input };
}
