/** Schema of the body of `POST /v1/predict` for text models. Compatible routes convert their bodies to it. */
import { z } from 'zod';
import { finiteNumber, textField, integerField } from '../request/field-types.ts';
import { imageSource } from '../request/brought-images.ts';
import { ignoredFields, requestFields } from '../request/request-fields.ts';
import { formFields, functionName } from './form/form-schema.ts';
import { messageContent, textOf } from './form/message-content.ts';
import { biasExpected, maxMessages, maxTextCharacters, maxTokenId, promptExpected } from './form/text-limits.ts';

/** Maximum texts per request; each takes slots of its own. */
export const maxTexts = 10;
const maxStops = 16;
const maxStopCharacters = 256;
export const maxTopLogprobs = 20;
/** Maximum of `max_tokens`; no model writes more in one answer. */
const maxTokenCount = 1_000_000;

const { model, ...otherRequestFields } = requestFields;

const togetherExpected = `messages of at most ${maxTextCharacters} characters together`;
const messagesExpected = `a list of 1 to ${maxMessages} messages {"role", "content"}`;
const stopExpected = `a text of 1 to ${maxStopCharacters} characters, or a list of at most ${maxStops}`;
const seedExpected = 'a whole number of 64 bits, or -1 for a random one';
const shareExpected = 'a number above 0, at most 1';

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
    role: textField(1, 64),
    content: messageContent,
    tool_calls: z.array(callSchema, { error: callsExpected }).nullish(),
  },
  { error: 'a message {"role", "content"}' },
);
/** A message of a conversation. Other fields are passed to the model's chat template. */
export type TextMessage = z.infer<typeof messageSchema>;

/** Returns the UTF-16 units of the contents of all messages. */
export function charactersOf(messages: readonly TextMessage[]): number {
  return messages.reduce((sum, { content }) => sum + textOf(content).length, 0);
}

const stopText = z
  .string({ error: stopExpected })
  .min(1, { error: stopExpected })
  .max(maxStopCharacters, { error: stopExpected });

/** Strict, like the body of image requests: unknown fields are rejected. */
export const textSchema = z.strictObject({
  model,
  prompt: z
    .union(
      [
        textField(1, maxTextCharacters),
        z
          .array(integerField(0, maxTokenId))
          .min(1, { error: promptExpected })
          .max(maxTextCharacters, { error: promptExpected }),
      ],
      { error: promptExpected },
    )
    .optional()
    .meta({
      description: 'Text to continue, as a string or as token ids. Instead of `messages`.',
      example: 'Once upon a time',
    }),
  messages: z
    .array(messageSchema, { error: messagesExpected })
    .min(1, { error: messagesExpected })
    .max(maxMessages, { error: messagesExpected })
    .refine((messages) => charactersOf(messages) <= maxTextCharacters, { error: togetherExpected })
    .optional()
    .meta({
      description:
        'Conversation to answer, rendered with the chat template of the model. Instead of `prompt`. Parts of the type `image_url` are for models whose `takes` has `image`.',
      example: [{ role: 'user', content: 'something sweet' }],
    }),
  image: imageSource.optional().meta({
    description:
      'An image to ask about, for models whose `takes` has it: the request is then one message with this image and `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body.',
  }),
  max_tokens: integerField(1, maxTokenCount)
    .optional()
    .meta({ description: 'Maximum number of tokens to generate. Default: the model’s.', example: 24 }),
  temperature: finiteNumber(0, 2)
    .optional()
    .meta({ description: '0 always takes the most probable token. Default: the model’s.' }),
  top_p: z
    .number({ error: shareExpected })
    .gt(0, { error: shareExpected })
    .max(1, { error: shareExpected })
    .optional()
    .meta({
      description: 'Samples from the most probable tokens whose probabilities add up to this. Default: the model’s.',
    }),
  top_k: integerField(0, maxTokenCount)
    .optional()
    .meta({ description: 'Samples from this many most probable tokens; 0 is all. Default: the model’s.' }),
  min_p: finiteNumber(0, 1)
    .optional()
    .meta({ description: 'Minimum probability of a token, relative to the most probable one. Default: 0.' }),
  presence_penalty: finiteNumber(-2, 2)
    .optional()
    .meta({ description: 'Penalty for tokens that were generated before. Default: 0.' }),
  frequency_penalty: finiteNumber(-2, 2)
    .optional()
    .meta({ description: 'Penalty for tokens that were generated before, once per occurrence. Default: 0.' }),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/, { error: biasExpected }), finiteNumber(-100, 100), { error: biasExpected })
    .optional()
    .meta({ description: 'Values to add to the logits of tokens, by token id. Default: none.' }),
  logprobs: z
    .boolean({ error: 'true or false' })
    .optional()
    .meta({ description: 'Whether to return the log probability of each token. Default: false.' }),
  top_logprobs: integerField(0, maxTopLogprobs)
    .optional()
    .meta({ description: 'Number of most probable alternatives to return for each token. Default: 0.' }),
  n: integerField(1, maxTexts)
    .optional()
    .meta({ description: 'Number of texts; text i has the seed `seed + i`. Default: 1.' }),
  seed: z
    .number({ error: seedExpected })
    .refine((seed) => Number.isInteger(seed) && seed >= -(2 ** 63) && seed <= 2 ** 64, { error: seedExpected })
    .optional()
    .meta({
      description:
        'The same seed and parameters give the same text. A seed of more than 32 bits is folded to 32; the result has the folded one. Default, and -1: random.',
    }),
  stop: z
    .union([stopText, z.array(stopText).max(maxStops)], { error: stopExpected })
    .optional()
    .meta({ description: 'Strings at which generation ends; they are not part of the text. Default: none.' }),
  ignore_eos: z
    .boolean({ error: 'true or false' })
    .optional()
    .meta({ description: 'Ignore the end token and generate max_tokens. Default: false.' }),
  ...formFields,
  max_nfe: integerField(1, maxTokenCount)
    .optional()
    .meta({ description: 'Block diffusion only: maximum number of model calls. Default: no limit.' }),
  confidence_threshold: finiteNumber(0, 1)
    .optional()
    .meta({ description: 'Block diffusion only: probability from which a token is kept. Default: the model’s.' }),
  tokens_per_step: integerField(1, 1024).optional().meta({
    description: 'Block diffusion only: number of tokens kept in each call, instead of those above the threshold.',
  }),
  ...otherRequestFields,
  ...ignoredFields,
});

/** Folds a seed of 64 bits to 32; returns undefined if a random seed is requested. */
export function seedOf(seed: number | undefined): number | undefined {
  if (seed === undefined || seed === -1) return undefined;
  const bits = BigInt.asUintN(64, BigInt(seed));
  return Number((bits ^ (bits >> 32n)) & 0xffff_ffffn);
}

/** A body that was validated against the schema. */
export type TextBody = z.infer<typeof textSchema>;

/** Our field names by the names that other systems have for them; error messages suggest them. */
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
