/** Contents of chat messages: text, or a list of texts and images in OpenAI's format. */
import { z } from 'zod';
import { imageSource } from '../../request/brought-images.ts';
import type { ChatMessage, ChatPart } from './chat-message.ts';
import { maxTextCharacters } from './text-limits.ts';

const contentExpected = 'text, or a list of parts {"type": "text", "text"} or {"type": "image_url", "image_url"}';
const imageUrlExpected = 'an object {"url"}, with an optional detail';
const contentText = z
  .string({ error: 'text' })
  .max(maxTextCharacters, { error: `text of at most ${maxTextCharacters} characters` });

/** How closely to look at an image; each model has its own meaning of it. */
export const imageDetail = z.enum(['auto', 'low', 'high'], { error: 'auto, low or high' }).optional();

const imagePart = z.strictObject({
  type: z.literal('image_url'),
  image_url: z.strictObject(
    {
      url: imageSource.meta({
        description:
          'PNG, JPEG or WebP: a data URL, an https URL that the server fetches, or the `url` of an image from an earlier request of yours.',
      }),
      detail: imageDetail.meta({ description: 'For the model. Default: auto.' }),
    },
    { error: imageUrlExpected },
  ),
});
const textPart = z.looseObject({ type: z.literal('text'), text: contentText });

export const messageContent = z.union(
  [
    contentText,
    z
      .array(
        z.discriminatedUnion('type', [textPart, imagePart], {
          error: 'a part of the type "text" or "image_url"',
        }),
        { error: contentExpected },
      )
      .min(1, { error: contentExpected }),
  ],
  { error: contentExpected },
);
export type MessageContent = z.infer<typeof messageContent>;
type ImagePart = z.infer<typeof imagePart>;

/** Returns the text of a message: its text parts, one per line. */
export function textOf(content: MessageContent): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** An image in messages. */
export interface MessageImage {
  part: ImagePart;
  /** Path of its URL in the body. */
  field: string;
}

/** Returns the images of all messages, in order. */
export function imagesIn(messages: readonly { content: MessageContent }[]): MessageImage[] {
  return messages.flatMap(({ content }, index) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part, at) =>
          part.type === 'image_url' ? [{ part, field: `messages.${index}.content.${at}.image_url.url` }] : [],
        ),
  );
}

/** Returns messages whose content is text, where it has no images: chat templates read no lists. */
export function withPlainContent<Message extends { content: MessageContent }>(messages: readonly Message[]): Message[] {
  return messages.map((message) =>
    imagesIn([message]).length === 0 ? { ...message, content: textOf(message.content) } : message,
  );
}

/** Returns messages whose images have other URLs. */
export function withImageUrls<Message extends { content: MessageContent }>(
  messages: readonly Message[],
  urlOf: (url: string) => string,
): Message[] {
  return messages.map((message) => ({
    ...message,
    content:
      typeof message.content === 'string'
        ? message.content
        : message.content.map((part) =>
            part.type === 'image_url'
              ? { ...part, image_url: { ...part.image_url, url: urlOf(part.image_url.url) } }
              : part,
          ),
  }));
}

/** The messages of a request. */
export type ConversationMessages = readonly ({ role: string; content: MessageContent } & object)[];

/** Returns messages for a chat template: parts where there are images, else text. */
export function chatMessagesOf(messages: ConversationMessages): ChatMessage[] {
  return withPlainContent(messages).map(({ content, ...message }) => ({
    ...message,
    content: typeof content === 'string' ? content : content.map((part) => chatPartOf(part)),
  }));
}

function chatPartOf(part: Exclude<MessageContent, string>[number]): ChatPart {
  return part.type === 'text' ? { type: 'text', text: part.text } : { type: 'image' };
}
