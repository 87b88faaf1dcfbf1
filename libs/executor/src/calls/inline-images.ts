import type { RowRequest } from '@darkroom/core';
import { type UpstreamTextInput, withImageUrls } from '@darkroom/kinds';

/** Returns the input with the attached images as data URLs in its messages, as OpenAI-compatible servers take them. */
export function withInlineImages(input: UpstreamTextInput, attachments: RowRequest['attachments']): UpstreamTextInput {
  const { messages } = input.params;
  if (messages === undefined || attachments === undefined) return input;
  const urlOf = (name: string): string => {
    const data = attachments.get(name);
    if (data === undefined) throw new TypeError(`the request has no attachment ${name}`);
    return `data:image/png;base64,${Buffer.from(data).toString('base64')}`;
  };
  return { ...input, params: { ...input.params, messages: withImageUrls(messages, urlOf) } };
}
