/** `POST /v1/chat/completions` (OpenAI-compatible): a view of an ordinary request. */
import type { Route } from '../../openapi/api-route.ts';
import { answerText } from './answer-text.ts';
import { chatCompletionsDocument, parseChatBody } from './chat-schema.ts';
import { chatShape } from './text-shape.ts';

export const chatCompletionsRoute: Route = {
  ...chatCompletionsDocument,
  handle: (c, context) => answerText(c, context, parseChatBody, chatShape),
};
