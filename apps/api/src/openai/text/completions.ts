/** `POST /v1/completions`: OpenAI's way of having a text continued, as a view of a request like any other. */
import type { Route } from '../../http/api-route.ts';
import { answerText } from './answer-text.ts';
import { completionsDocument, parseCompletionBody } from './completions-schema.ts';
import { completionShape } from './text-shape.ts';

export const completionsRoute: Route = {
  ...completionsDocument,
  handle: (c, context) => answerText(c, context, parseCompletionBody, completionShape),
};
