/** The body of `POST /v1/predict` for a model of text. Routes of other systems make one of what they were sent. */
import { z } from 'zod';
import { finiteNumber, textOf, wholeNumber } from '../field-types.ts';
import { maxSeed, requestFields } from '../request-fields.ts';
import { formFields, functionName } from './form/form-schema.ts';

/** UTF-16 units of a prompt, and of all messages together: several times what models read. */
export const maxTextCharacters = 1_000_000;
const maxMessages = 1000;
/** Texts of a request; each takes room of its own. */
export const maxTexts = 10;
const maxStops = 16;
const maxStopCharacters = 256;
const maxBiases = 1024;
export const maxTopLogprobs = 20;
/** No model writes more in one answer. */
const maxTokenCount = 1_000_000;

const { model, ...otherRequestFields } = requestFields;

const promptExpected = `text of 1 to ${maxTextCharacters} characters, or a list of ids of tokens`;
const messagesExpected = `a list of 1 to ${maxMessages} messages {"role", "content"}`;
const togetherExpected = `messages of at most ${maxTextCharacters} characters together`;
const stopExpected = `a text of 1 to ${maxStopCharacters} characters, or a list of at most ${maxStops}`;
const shareExpected = 'a number above 0, at most 1';
const biasExpected = `an object of at most ${maxBiases} numbers from -100 to 100 by ids of tokens`;

const callsExpected = 'a list of calls {"id", "type": "function", "function": {"name", "arguments"}}';
const callSchema = z.looseObject(
  {
    function: z.looseObject(
      {
        name: functionName,
        arguments: z.union([z.string(), z.looseObject({})], { error: 'JSON in a text, or an object' }),
      },
      { error: 'an object {"name", "arguments"}' },
    ),
  },
  { error: 'a call {"id", "type": "function", "function": {"name", "arguments"}}' },
);

const messageSchema = z.looseObject(
  {
    role: textOf(1, 64),
    content: z
      .string({ error: 'text' })
      .max(maxTextCharacters, { error: `text of at most ${maxTextCharacters} characters` }),
    tool_calls: z.array(callSchema, { error: callsExpected }).nullish(),
  },
  { error: 'a message {"role", "content"}' },
);
/** A turn of a conversation. What else it has is for the model's template. */
export type TextMessage = z.infer<typeof messageSchema>;

/** UTF-16 units of all that is said. */
export function charactersOf(messages: readonly TextMessage[]): number {
  return messages.reduce((sum, { content }) => sum + content.length, 0);
}

const stopText = z
  .string({ error: stopExpected })
  .min(1, { error: stopExpected })
  .max(maxStopCharacters, { error: stopExpected });

/** Strict, as the body of pictures is. */
export const textSchema = z.strictObject({
  model,
  prompt: z
    .union(
      [
        textOf(1, maxTextCharacters),
        z
          .array(wholeNumber(0, 2 ** 31))
          .min(1, { error: promptExpected })
          .max(maxTextCharacters, { error: promptExpected }),
      ],
      { error: promptExpected },
    )
    .optional()
    .meta({
      description: 'What to continue, as text or as ids of tokens. Instead of `messages`.',
      example: 'Once upon a time',
    }),
  messages: z
    .array(messageSchema, { error: messagesExpected })
    .min(1, { error: messagesExpected })
    .max(maxMessages, { error: messagesExpected })
    .refine((messages) => charactersOf(messages) <= maxTextCharacters, { error: togetherExpected })
    .optional()
    .meta({
      description: 'What to answer, by the template of the model. Instead of `prompt`.',
      example: [{ role: 'user', content: 'something sweet' }],
    }),
  max_tokens: wholeNumber(1, maxTokenCount)
    .optional()
    .meta({ description: 'Tokens to write at most. Default: the model’s.', example: 24 }),
  temperature: finiteNumber(0, 2)
    .optional()
    .meta({ description: '0 takes the most probable token. Default: the model’s.' }),
  top_p: z
    .number({ error: shareExpected })
    .gt(0, { error: shareExpected })
    .max(1, { error: shareExpected })
    .optional()
    .meta({ description: 'The most probable tokens that have this much together. Default: the model’s.' }),
  top_k: wholeNumber(0, maxTokenCount)
    .optional()
    .meta({ description: 'The most probable tokens; 0 is all. Default: the model’s.' }),
  min_p: finiteNumber(0, 1)
    .optional()
    .meta({ description: 'Tokens at least so probable, in parts of the most probable one. Default: 0.' }),
  presence_penalty: finiteNumber(-2, 2)
    .optional()
    .meta({ description: 'Against tokens that were written before. Default: 0.' }),
  frequency_penalty: finiteNumber(-2, 2)
    .optional()
    .meta({ description: 'The same, for each time they were. Default: 0.' }),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/, { error: biasExpected }), finiteNumber(-100, 100), { error: biasExpected })
    .refine((biases) => Object.keys(biases).length <= maxBiases, { error: biasExpected })
    .optional()
    .meta({ description: 'Added to the logits of tokens, by their ids. Default: none.' }),
  logprobs: z
    .boolean({ error: 'true or false' })
    .optional()
    .meta({ description: 'Whether to say how probable each token was. Default: false.' }),
  top_logprobs: wholeNumber(0, maxTopLogprobs)
    .optional()
    .meta({ description: 'So many other tokens too. Default: 0.' }),
  n: wholeNumber(1, maxTexts).optional().meta({ description: 'Texts; text i has the seed `seed + i`. Default: 1.' }),
  seed: wholeNumber(0, maxSeed)
    .optional()
    .meta({ description: 'The same seed and parameters give the same text. Default: random; the result tells it.' }),
  stop: z
    .union([stopText, z.array(stopText).max(maxStops)], { error: stopExpected })
    .optional()
    .meta({ description: 'Texts that end it, and are not part of it. Default: none.' }),
  ignore_eos: z
    .boolean({ error: 'true or false' })
    .optional()
    .meta({ description: 'Write on to max_tokens. Default: false.' }),
  ...formFields,
  max_nfe: wholeNumber(1, maxTokenCount)
    .optional()
    .meta({ description: 'Of block diffusion: calls of the model at most. Default: as many as it takes.' }),
  confidence_threshold: finiteNumber(0, 1)
    .optional()
    .meta({ description: 'Of block diffusion: how probable a token must be to stay. Default: the model’s.' }),
  tokens_per_step: wholeNumber(1, 1024).optional().meta({
    description: 'Of block diffusion: so many tokens stay in each call, instead of those above the threshold.',
  }),
  ...otherRequestFields,
});

/** A body that passed the schema. */
export type TextRequest = z.infer<typeof textSchema>;

/** Our fields by what people used to other systems call them. */
export const foreignTextFields: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_tokens',
  max_new_tokens: 'max_tokens',
  max_length: 'max_tokens',
  n_predict: 'max_tokens',
  stop_sequences: 'stop',
  inputs: 'prompt',
  input: 'prompt',
  num_return_sequences: 'n',
};
