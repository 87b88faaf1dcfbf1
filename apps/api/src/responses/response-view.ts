/** A response as OpenAI's clients know it. */
import { type OutputInfo, type RequestStatus, timeOfRequestId } from '@darkroom/core';
import { formOf, isForUpstream, type StoredTextInput, textUsage, type UpstreamTextInput } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { exampleId } from '../http/api-route.ts';
import { choiceSchema, choiceView, formatSchema, formatView, toolSchema, toolViews } from './response-form.ts';
import { idOf } from './response-ids.ts';
import { itemSchema, itemView, type ResponseItem } from './response-items.ts';

/** What a response keeps of how it was asked for, in `shown` of its request. */
const shownSchema = z.object({
  route: z.literal('responses'),
  background: z.boolean(),
  store: z.boolean(),
  metadata: z.record(z.string(), z.string()),
  maxOutputTokens: z.int().nullable(),
  previousResponseId: z.string().nullable(),
});
export type ShownResponse = z.infer<typeof shownSchema>;

/** What was said in it: in `said`, as private as a prompt. */
const saidSchema = z.object({
  instructions: z.string().nullable(),
  /** The whole conversation before the answer, without instructions. */
  messages: z.array(z.looseObject({ role: z.string(), content: z.string() })),
});
export type SaidResponse = z.infer<typeof saidSchema>;

/** The request that a response is a view of. Its input never changes, but for `said`, which goes with private prompts. */
export type StoredResponse = Pick<RequestStatus, 'id' | 'model' | 'input'>;

/** Undefined for a request that did not come as a response. */
export function shownOf({ input }: Pick<StoredResponse, 'input'>): ShownResponse | undefined {
  return shownSchema.safeParse((input as StoredTextInput).shown).data;
}

/** Undefined once it has ended on a server that does not keep prompts. */
export function saidOf({ input }: Pick<StoredResponse, 'input'>): SaidResponse | undefined {
  return saidSchema.safeParse((input as StoredTextInput).said).data;
}

/** Null where the server that runs the model has its own. */
function samplingOf(input: StoredTextInput | UpstreamTextInput): { temperature: number | null; topP: number | null } {
  if (!isForUpstream(input)) return input;
  return { temperature: input.asked.temperature ?? null, topP: input.asked.top_p ?? null };
}

const statuses = ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'] as const;

/** How far a response is. */
export interface ResponseState {
  status: (typeof statuses)[number];
  /** UTF-16 units of the text as it was written. */
  length: number;
  items: readonly ResponseItem[];
  /** Undefined before the text is at its end. */
  output: OutputInfo | undefined;
  error: { code: string; message: string } | undefined;
  /** When it was completed, ms. */
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
  const form = isForUpstream(input) ? formOf(input.asked) : input.form;
  const shown = shownOf(request);
  const { status, output, error, completedAtMs } = state;
  const isOver = status !== 'queued' && status !== 'in_progress';
  return {
    id: idOf('response', id),
    object: 'response',
    created_at: Math.floor(timeOfRequestId(id) / 1000),
    status,
    completed_at: completedAtMs === undefined ? null : Math.floor(completedAtMs / 1000),
    background: shown?.background ?? false,
    error: error === undefined ? null : { type: 'generation_error', ...error },
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: saidOf(request)?.instructions ?? null,
    max_output_tokens: shown?.maxOutputTokens ?? null,
    metadata: { ...shown?.metadata },
    model,
    output: state.items.map((item) => itemView(item, isOver)),
    parallel_tool_calls: form?.parallel_tool_calls ?? true,
    previous_response_id: shown?.previousResponseId ?? null,
    store: shown?.store ?? true,
    temperature,
    text: { format: formatView(form) },
    tool_choice: choiceView(form),
    tools: toolViews(form),
    top_p: topP,
    truncation: 'disabled',
    usage: isOver && output !== undefined ? usageOf(output) : null,
  };
}

function usageOf(output: OutputInfo): NonNullable<ResponseView['usage']> {
  const usage = textUsage([output]);
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.cached_tokens },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.total_tokens,
    nfe: usage.nfe,
  };
}

const count = z.int().min(0);

export const responseSchema = z
  .strictObject({
    id: z.string().openapi({ description: '`resp_` and the id of the request that it is a view of.' }),
    object: z.literal('response'),
    created_at: z.int().openapi({ description: 'Seconds since the epoch.' }),
    status: z.enum(statuses),
    completed_at: z.int().nullable(),
    background: z.boolean(),
    error: z.strictObject({ type: z.literal('generation_error'), code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.strictObject({ reason: z.literal('max_output_tokens') }).nullable(),
    instructions: z.string().nullable().openapi({ description: 'Null too where prompts are not kept.' }),
    max_output_tokens: count.nullable(),
    metadata: z.record(z.string(), z.string()),
    model: z.string(),
    output: z.array(itemSchema).openapi({ description: 'With what stands by now.' }),
    parallel_tool_calls: z.boolean(),
    previous_response_id: z.string().nullable(),
    store: z.boolean(),
    temperature: z.number().nullable(),
    text: z.strictObject({ format: formatSchema }),
    tool_choice: choiceSchema,
    tools: z.array(toolSchema).openapi({ description: 'Empty too where prompts are not kept.' }),
    top_p: z.number().nullable(),
    truncation: z.literal('disabled'),
    usage: z
      .strictObject({
        input_tokens: count,
        input_tokens_details: z.strictObject({ cached_tokens: count }),
        output_tokens: count,
        output_tokens_details: z.strictObject({ reasoning_tokens: z.literal(0) }),
        total_tokens: count,
        nfe: count.openapi({ description: 'Calls of the model after the prompt.' }),
      })
      .nullable(),
  })
  .openapi('Response');

/** For the document. */
export const exampleRequest: StoredResponse = {
  id: exampleId.replace('emoji-sd', 'emoji-writer'),
  model: 'emoji-writer',
  input: {
    temperature: 0,
    topP: 1,
    shown: {
      route: 'responses',
      background: false,
      store: true,
      metadata: {},
      maxOutputTokens: null,
      previousResponseId: null,
    } satisfies ShownResponse,
  },
};
