/** `POST /v1/chat/completions`: OpenAI's way of having messages answered, as a view of a request like any other. */
import type { Route } from '../../http/api-route.ts';
import { answerText } from './answer-text.ts';
import { chatCompletionsDocument, parseChatBody } from './chat-schema.ts';
import { chatShape } from './text-shape.ts';

export const chatCompletionsRoute: Route = {
  ...chatCompletionsDocument,
  handle: (c, context) => answerText(c, context, parseChatBody, chatShape),
};
