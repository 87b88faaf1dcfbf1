/** The body and the answer of `POST /v1/completions`. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';
import type { TextAsk } from './answer-text.ts';
import {
  answerFields,
  finishReason,
  ourFields,
  readAskFields,
  streamOf,
  streamProblems,
  textBodySchema,
  textDocument,
} from './openai-text-schema.ts';

const maxAlternatives = 5;
const logprobsExpected = `a whole number from 0 to ${maxAlternatives}`;
const promptExpected = 'text, or a list of ids of tokens';

const ids = z.array(z.int().min(0)).min(1);
const prompt = z.union([z.string().min(1), ids, z.array(z.string().min(1)).length(1), z.array(ids).length(1)]).meta({
  description: 'What to continue, as text or as ids of tokens; one in each request.',
  example: '<|im_start|>assistant\na bird on a',
});

const ownFields = {
  logprobs: z
    .int({ error: logprobsExpected })
    .min(0, { error: logprobsExpected })
    .max(maxAlternatives, { error: logprobsExpected })
    .optional()
    .meta({ description: 'Says how probable each token was, and so many others beside it.' }),
  echo: z.literal(false, { error: 'false: a prompt is not repeated' }).optional(),
  suffix: z.literal('', { error: 'nothing: the models here write on, and not in between' }).optional(),
  best_of: z.unknown().optional().meta({ description: 'As many as `n`: all that are written are answered.' }),
};

const bodySchema = textBodySchema('CompletionRequest', { prompt }, ownFields);

/** What this route makes of a body. Throws 400 with all that is wrong with what is read here. */
export function parseCompletionBody(body: unknown): TextAsk {
  const anyPrompt = z.union([z.string(), z.array(z.unknown())], { error: promptExpected });
  const fields = readAskFields({ ...ownFields, prompt: anyPrompt }, body);
  const { prompt: given, logprobs } = fields;
  const problems = [...streamProblems(fields), ...promptProblems(given), ...bestProblems(fields)];
  if (problems.length > 0) throw invalidFields(problems);
  const { body: ourBody, names } = ourFields(fields);
  const asked = logprobs === undefined ? {} : { logprobs: true, top_logprobs: logprobs };
  return {
    body: { ...ourBody, ...asked, prompt: isList(given) ? given[0] : given },
    names: { ...names, top_logprobs: 'logprobs' },
    ...streamOf(fields),
  };
}

/** Whether these are prompts, and not one. */
function isList(given: string | readonly unknown[]): given is readonly unknown[] {
  return typeof given !== 'string' && given.length > 0 && typeof given[0] !== 'number';
}

function promptProblems(given: string | readonly unknown[]): FieldProblem[] {
  if (!isList(given) || given.length === 1) return [];
  return [invalidValue('prompt', given, 'one prompt: each takes a request of its own, and they share their steps')];
}

function bestProblems({ best_of: best, n = 1 }: { best_of?: unknown; n?: unknown }): FieldProblem[] {
  return best === undefined || best === n ? [] : [invalidValue('best_of', best, 'as many as n')];
}

export const completionAnswerSchema = z
  .strictObject({
    ...answerFields('text_completion', 'cmpl-'),
    choices: z.array(
      z.strictObject({
        index: z.int().min(0),
        text: z.string(),
        logprobs: z
          .strictObject({
            tokens: z.array(z.string()),
            token_logprobs: z.array(z.number()),
            top_logprobs: z.array(z.record(z.string(), z.number())),
            text_offset: z.array(z.int().min(0)).openapi({ description: 'In the answer, in UTF-16 code units.' }),
          })
          .nullable(),
        finish_reason: finishReason,
      }),
    ),
  })
  .openapi('CompletionAnswer');

const chunk = (choice: string) =>
  `data: {"id":"cmpl-…","object":"text_completion","created":1795225246,"model":"emoji-writer","choices":[${choice}]}\n\n`;

export const completionsDocument = textDocument({
  path: '/v1/completions',
  summary: 'Have a text continued, as of OpenAI',
  description: `For OpenAI's SDKs: a view of a request as \`POST /v1/predict\` makes it, of a model of text, without a template. Where
it names no \`max_tokens\`, the model's default counts.`,
  body: {
    schema: bodySchema,
    example: { model: 'emoji-writer', prompt: '<|im_start|>assistant\na bird on a', max_tokens: 8 },
  },
  answer: completionAnswerSchema,
  stream: [
    '{"index":0,"text":"blue background","logprobs":null,"finish_reason":null}',
    '{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}',
  ]
    .map((choice) => chunk(choice))
    .join(''),
});
