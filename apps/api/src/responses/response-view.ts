/** A response in OpenAI's format. */
import { type OutputInfo, type RequestSnapshot, timeOfRequestId } from '@darkroom/core';
import {
  formOf,
  isForUpstream,
  type StoredTextInput,
  type TextMessage,
  textUsage,
  type UpstreamTextInput,
  withImageUrls,
} from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { exampleId } from '../openapi/api-route.ts';
import { choiceSchema, choiceView, formatSchema, formatView, toolSchema, toolViews } from './response-form.ts';
import { idOf } from './response-ids.ts';
import { itemSchema, itemView, type ResponseItem } from './response-items.ts';

/** Fields of the response's body that its view shows; stored in `shown` of the request's input. */
const shownSchema = z.object({
  route: z.literal('responses'),
  background: z.boolean(),
  store: z.boolean(),
  maxOutputTokens: z.int().nullable(),
  previousResponseId: z.string().nullable(),
});
export type ShownResponse = z.infer<typeof shownSchema>;

/** The conversation of a response; stored in `said` of the request's input, as private as a prompt. */
const conversationSchema = z.object({
  instructions: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).optional(),
  /** The full conversation before the answer, without instructions. */
  messages: z.array(z.looseObject({ role: z.string(), content: z.custom<TextMessage['content']>() })),
});
export type ResponseConversation = z.infer<typeof conversationSchema>;

/** The request behind a response. Its input never changes, except that `said` is deleted with private prompts. */
export type StoredResponse = Pick<RequestSnapshot, 'id' | 'model' | 'input'>;

/** Returns undefined for a request that was not created by `POST /v1/responses`. */
export function shownOf({ input }: Pick<StoredResponse, 'input'>): ShownResponse | undefined {
  return shownSchema.safeParse((input as StoredTextInput).shown).data;
}

/** Returns undefined if the response has ended and the server does not store prompts. */
export function conversationOf({ id, input }: Pick<StoredResponse, 'id' | 'input'>): ResponseConversation | undefined {
  const found = conversationSchema.safeParse((input as StoredTextInput).said).data;
  return found && { ...found, messages: withImageUrls(found.messages, (name) => `/v1/predict/${id}/inputs/${name}`) };
}

/** Returns the sampling parameters; null if the upstream server chooses its own. */
function samplingOf(input: StoredTextInput | UpstreamTextInput): { temperature: number | null; topP: number | null } {
  if (!isForUpstream(input)) return input;
  return { temperature: input.params.temperature ?? null, topP: input.params.top_p ?? null };
}

const statuses = ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'] as const;

/** State of a response. */
export interface ResponseState {
  status: (typeof statuses)[number];
  /** UTF-16 code units of the text, including the markup of calls. */
  length: number;
  items: readonly ResponseItem[];
  /** Undefined until the text is complete. */
  output: OutputInfo | undefined;
  error: { code: string; message: string } | undefined;
  /** Time of completion, ms since the epoch. */
  completedAtMs: number | undefined;
}

export const initialState: ResponseState = {
  status: 'queued',
  length: 0,
  items: [],
  output: undefined,
  error: undefined,
  completedAtMs: undefined,
};

export type ResponseView = z.infer<typeof responseSchema>;

export function responseView(request: StoredResponse, state: ResponseState): ResponseView {
  const { id, model } = request;
  const input = request.input as StoredTextInput | UpstreamTextInput;
  const { temperature, topP } = samplingOf(input);
  const form = isForUpstream(input) ? formOf(input.params) : input.form;
  const shown = shownOf(request);
  const { status, output, error, completedAtMs } = state;
  const hasEnded = status !== 'queued' && status !== 'in_progress';
  return {
    id: idOf('response', id),
    object: 'response',
    created_at: Math.floor(timeOfRequestId(id) / 1000),
    status,
    completed_at: completedAtMs === undefined ? null : Math.floor(completedAtMs / 1000),
    background: shown?.background ?? false,
    error: error === undefined ? null : { type: 'generation_error', ...error },
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: conversationOf(request)?.instructions ?? null,
    max_output_tokens: shown?.maxOutputTokens ?? null,
    metadata: { ...conversationOf(request)?.metadata },
    model,
    output: state.items.map((item) => itemView(item, hasEnded)),
    parallel_tool_calls: form?.parallel_tool_calls ?? true,
    previous_response_id: shown?.previousResponseId ?? null,
    store: shown?.store ?? true,
    temperature,
    text: { format: formatView(form) },
    tool_choice: choiceView(form),
    tools: toolViews(form),
    top_p: topP,
    truncation: 'disabled',
    usage: hasEnded && output !== undefined ? usageOf(output) : null,
  };
}

function usageOf(output: OutputInfo): NonNullable<ResponseView['usage']> {
  const usage = textUsage([output]);
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.cached_tokens, cache_write_tokens: 0 },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.total_tokens,
    nfe: usage.nfe,
  };
}

const count = z.int().min(0);

export const responseSchema = z
  .strictObject({
    id: z.string().openapi({ description: '`resp_` and the id of the underlying request.' }),
    object: z.literal('response'),
    created_at: z.int().openapi({ description: 'Seconds since the epoch.' }),
    status: z.enum(statuses),
    completed_at: z.int().nullable(),
    background: z.boolean(),
    error: z.strictObject({ type: z.literal('generation_error'), code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.strictObject({ reason: z.literal('max_output_tokens') }).nullable(),
    instructions: z
      .string()
      .nullable()
      .openapi({ description: 'Null also after the end if the server does not store prompts.' }),
    max_output_tokens: count.nullable(),
    metadata: z
      .record(z.string(), z.string())
      .openapi({ description: 'Empty after the end if the server does not store prompts.' }),
    model: z.string(),
    output: z.array(itemSchema).openapi({ description: 'The items so far.' }),
    parallel_tool_calls: z.boolean(),
    previous_response_id: z.string().nullable(),
    store: z.boolean(),
    temperature: z.number().nullable(),
    text: z.strictObject({ format: formatSchema }),
    tool_choice: choiceSchema,
    tools: z
      .array(toolSchema)
      .openapi({ description: 'Empty also after the end if the server does not store prompts.' }),
    top_p: z.number().nullable(),
    truncation: z.literal('disabled'),
    usage: z
      .strictObject({
        input_tokens: count,
        input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: z.literal(0) }),
        output_tokens: count,
        output_tokens_details: z.strictObject({ reasoning_tokens: z.literal(0) }),
        total_tokens: count,
        nfe: count.openapi({ description: 'Number of function evaluations: model calls after the prompt.' }),
      })
      .nullable(),
  })
  .openapi('Response');

/** Example for the OpenAPI document: a background response. */
export const exampleRequest: StoredResponse = {
  id: exampleId.replace('emoji-sd', 'emoji-writer'),
  model: 'emoji-writer',
  input: {
    temperature: 0,
    topP: 1,
    shown: {
      route: 'responses',
      background: true,
      store: true,
      maxOutputTokens: null,
      previousResponseId: null,
    } satisfies ShownResponse,
  },
};
