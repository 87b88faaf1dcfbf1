import { DarkroomError } from '@darkroom/core';
import type { ChatMessage } from '../form/chat-message.ts';
import type { TextCodec } from './text-codec.ts';

/** A prompt to read: a text, or messages to render with the model's template. */
export type PromptJob = {
  /** Reading stops once the prompt surely has more tokens than this. */
  readonly maxTokens: number;
  /** A prompt with more UTF-16 units than this is not tokenized. */
  readonly maxCharacters: number;
  /** Images of the messages, in order, and the token that templates write for each. */
  readonly images?: { readonly token: string; readonly texts: readonly string[] } | undefined;
} & (
  | { readonly prompt: string; readonly isRendered?: boolean }
  | { readonly messages: readonly ChatMessage[]; readonly tools?: readonly object[] | undefined }
);

/** The token ids of a prompt, or the length of one that is too long, or a problem that starts with the field's name. */
export type PromptRead = { readonly ids: number[] } | { readonly characters: number } | { readonly problem: string };

/** UTF-16 units per chunk. Tokenizing a text without spaces takes more than linear time. */
const chunkLength = 4096;

/** Renders messages; returns a job with the rendered text, or the reason why the template rejects them. */
export function renderJob(
  codec: Pick<TextCodec, 'renderChat'>,
  job: PromptJob,
): Extract<PromptJob, { prompt: string }> | { problem: string } {
  if ('prompt' in job) return job;
  const { messages, tools, images, ...limits } = job;
  try {
    const rendered = codec.renderChat(messages, { ...(tools && { tools }) });
    return { ...limits, prompt: images === undefined ? rendered : withImageTexts(rendered, images), isRendered: true };
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'invalid_request') throw error;
    return { problem: error.message };
  }
}

/** Replaces the image tokens of a rendered prompt by the texts of the images, as many as there are. */
function withImageTexts(rendered: string, { token, texts }: NonNullable<PromptJob['images']>): string {
  let count = 0;
  return rendered.replaceAll(token, () => texts[count++] ?? token);
}

export function readPrompt(codec: Pick<TextCodec, 'renderChat' | 'encode'>, job: PromptJob): PromptRead {
  const rendered = renderJob(codec, job);
  if ('problem' in rendered) return rendered;
  const { prompt, isRendered = false, maxTokens, maxCharacters } = rendered;
  if (prompt.length > maxCharacters) return { characters: prompt.length };
  const ids = tooManyIds(codec, prompt, maxTokens) ?? codec.encode(prompt, { addSpecialTokens: !isRendered });
  return { ids };
}

/** Returns the ids of a prefix, read in chunks, once there are more than `max`; undefined if the text has fewer. */
function tooManyIds({ encode }: Pick<TextCodec, 'encode'>, text: string, max: number): number[] | undefined {
  // Short enough to be tokenized in full.
  if (text.length <= max) return undefined;
  const ids: number[] = [];
  for (let at = 0; at < text.length && ids.length <= max; at += chunkLength)
    for (const id of encode(text.slice(at, at + chunkLength), { addSpecialTokens: false })) ids.push(id);
  return ids.length > max ? ids : undefined;
}
