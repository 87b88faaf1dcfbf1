/** `POST /v1/completions` (OpenAI-compatible): a view of an ordinary request. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';
import type { Route } from '../../openapi/api-route.ts';
import { answerPrompts } from './answer-prompts.ts';
import { answerText, type ParsedTextBody } from './answer-text.ts';
import {
  answerFields,
  finishReason,
  toOurFields,
  parseRequestFields,
  readStreamOptions,
  streamProblems,
  createTextBodySchema,
  textDocument,
} from './openai-text-schema.ts';
import { chatFields, refusedProblems } from './peer-fields.ts';
import { completionShape } from './text-shape.ts';

const maxAlternatives = 5;
const maxPrompts = 64;
const logprobsExpected = `a whole number from 0 to ${maxAlternatives}`;
const promptExpected = 'text, or a list of token ids';

const ids = z.array(z.int().min(0)).min(1);
const prompt = z
  .union([
    z.string().min(1),
    ids,
    z.array(z.string().min(1)).min(1).max(maxPrompts),
    z.array(ids).min(1).max(maxPrompts),
  ])
  .meta({
    description:
      'The text to continue, as text or token ids; or a list of such prompts, each run as a separate request.',
    example: '<|im_start|>assistant\na bird on a',
  });

const maxTokens = z.int().min(0).optional().meta({
  description: 'Maximum number of generated tokens. With 0 the answer is empty; with `echo`, it is the prompt.',
});

const ownFields = {
  logprobs: z
    .int({ error: logprobsExpected })
    .min(0, { error: logprobsExpected })
    .max(maxAlternatives, { error: logprobsExpected })
    .optional()
    .meta({ description: 'Returns the log probability of each token, and of this many alternatives.' }),
  echo: z
    .boolean({ error: 'true or false' })
    .optional()
    .meta({ description: 'Puts the prompt, which must be text, before each of its answers. Default: false.' }),
  suffix: z.literal('', { error: 'nothing: models here continue a text and cannot insert into it' }).optional(),
  best_of: z.unknown().optional().meta({ description: 'Must equal `n`: all generated texts are returned.' }),
};

const bodySchema = createTextBodySchema('CompletionRequest', { prompt }, { ...ownFields, max_tokens: maxTokens });

/** Parses a request body. Throws 400 with all problems of the fields that this route reads itself. */
export function parseCompletionBody(body: unknown): ParsedTextBody {
  const anyPrompt = z.union([z.string(), z.array(z.unknown())], { error: promptExpected });
  const fields = parseRequestFields({ ...ownFields, prompt: anyPrompt }, body);
  const { prompt: given, logprobs } = fields;
  const problems = [...streamProblems(fields), ...promptProblems(given, fields), ...bestOfProblems(fields)];
  // OpenAI and vLLM allow 0, to echo or count a prompt. Our requests generate at least one token, which is discarded.
  const isPromptOnly = fields['max_tokens'] === 0;
  const { body: ourBody, names } = toOurFields(isPromptOnly ? { ...fields, max_tokens: 1 } : fields, problems);
  problems.push(...refusedProblems(fields, chatFields));
  if (problems.length > 0) throw invalidFields(problems);
  const prompts = isPromptList(given) ? given : [given];
  const logprobFields = logprobs === undefined ? {} : { logprobs: true, top_logprobs: logprobs };
  return {
    body: { ...ourBody, ...logprobFields, prompt: prompts[0] },
    ...(prompts.length > 1 && {
      others: prompts.slice(1).map((each) => ({ ...ourBody, ...logprobFields, prompt: each })),
    }),
    ...(isPromptOnly && { isPromptOnly }),
    ...(fields.echo === true && { echoes: prompts.map(String) }),
    names: { ...names, top_logprobs: 'logprobs' },
    ...readStreamOptions(fields),
  };
}

/** Tells a list of prompts from a single prompt, which may be a list of token ids. */
function isPromptList(given: string | readonly unknown[]): given is readonly unknown[] {
  return typeof given !== 'string' && given.length > 0 && typeof given[0] !== 'number';
}

function promptProblems(
  given: string | readonly unknown[],
  { echo, logprobs }: { echo?: boolean | undefined; logprobs?: number | undefined },
): FieldProblem[] {
  const prompts = isPromptList(given) ? given : [given];
  if (prompts.length > maxPrompts)
    return [invalidValue('prompt', `${prompts.length} prompts`, `a text or a list of at most ${maxPrompts} prompts`)];
  if (echo !== true) return [];
  if (logprobs !== undefined)
    return [invalidValue('logprobs', logprobs, 'nothing with echo: prompts have no logprobs')];
  const ids = prompts.find((prompt) => typeof prompt !== 'string');
  return ids === undefined ? [] : [invalidValue('echo', true, 'false with a prompt of token ids: send it as text')];
}

function bestOfProblems({ best_of: best, n = 1 }: { best_of?: unknown; n?: unknown }): FieldProblem[] {
  return best === undefined || best === n ? [] : [invalidValue('best_of', best, 'the same number as n')];
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
            text_offset: z
              .array(z.int().min(0))
              .openapi({ description: 'Offset of each token in the answer, in UTF-16 code units.' }),
          })
          .nullable(),
        finish_reason: finishReason,
      }),
    ),
  })
  .openapi('CompletionAnswer');

const chunk = (choice: string) =>
  `data: {"id":"cmpl-…","object":"text_completion","created":1795225246,"model":"emoji-writer","choices":[${choice}]}\n\n`;

export const completionsRoute: Route = {
  ...textDocument({
    path: '/v1/completions',
    operationId: 'createCompletion',
    summary: 'Continue a text (OpenAI-compatible)',
    description: `For OpenAI's SDKs and text models: a view of a request such as \`POST /v1/predict\` creates. No chat template is applied.
\`max_tokens\` defaults to the model's value.`,
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
  }),
  handle: (c, context) => answerText(c, context, parseCompletionBody, completionShape, answerPrompts),
};
