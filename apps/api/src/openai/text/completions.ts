/** `POST /v1/completions` (OpenAI-compatible): a view of an ordinary request. */
import type { Route } from '../../openapi/api-route.ts';
import { answerPrompts } from './answer-prompts.ts';
import { answerText } from './answer-text.ts';
import { completionsDocument, parseCompletionBody } from './completions-schema.ts';
import { completionShape } from './text-shape.ts';

export const completionsRoute: Route = {
  ...completionsDocument,
  handle: (c, context) => answerText(c, context, parseCompletionBody, completionShape, answerPrompts),
};
