/** Output items of a response: messages and function calls. */
import type { TextMessage, TextOutputFacts, TokenLogprob } from '@darkroom/kinds';
import { toolCallId } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { idOf } from './response-ids.ts';

export const itemStatuses = ['in_progress', 'completed', 'incomplete'] as const;
export type ItemStatus = (typeof itemStatuses)[number];

export interface ResponseMessage {
  type: 'message';
  id: string;
  status: ItemStatus;
  /** The final text so far. */
  text: string;
  /** Logprobs of its tokens; empty if they were not requested. */
  tokens: readonly TokenLogprob[];
}

export interface ResponseCall {
  type: 'function_call';
  id: string;
  status: ItemStatus;
  callId: string;
  name: string;
  /** JSON; incomplete until the call is completed. */
  arguments: string;
}

export type ResponseItem = ResponseMessage | ResponseCall;

/** Creates a message. The id of the first one has no index. */
export function newMessage(requestId: string, index: number): ResponseMessage {
  const id = idOf('message', requestId);
  return { type: 'message', id: index === 0 ? id : `${id}_${index}`, status: 'in_progress', text: '', tokens: [] };
}

export function newCall(requestId: string, at: number, name: string): ResponseCall {
  const callId = toolCallId({ id: requestId, index: 0, at });
  const id = `${idOf('call', requestId)}_${at}`;
  return { type: 'function_call', id, status: 'in_progress', callId, name, arguments: '' };
}

/** Returns the final status of the last item. */
export function endOfItem({ finish_reason: reason }: Pick<TextOutputFacts, 'finish_reason'>): ItemStatus {
  return reason === 'stop' ? 'completed' : 'incomplete';
}

/** Converts an item to a message of the next conversation turn. */
export function messageOfItem(item: ResponseItem): TextMessage {
  if (item.type === 'message') return { role: 'assistant', content: item.text };
  const { callId: id, name, arguments: json } = item;
  return {
    role: 'assistant',
    content: '',
    tool_calls: [{ id, type: 'function', function: { name, arguments: json } }],
  };
}

/** Merges calls into the assistant message before them, because chat templates expect one message. */
export function joinCalls(messages: readonly TextMessage[]): TextMessage[] {
  const joined: TextMessage[] = [];
  for (const message of messages) {
    const { role, content, tool_calls: calls } = message;
    const last = joined.at(-1);
    if (role === 'assistant' && content === '' && calls != null && last?.role === 'assistant')
      joined.splice(-1, 1, { ...last, tool_calls: [...(last.tool_calls ?? []), ...calls] });
    else joined.push(message);
  }
  return joined;
}

const tokenShape = { token: z.string(), logprob: z.number(), bytes: z.array(z.int().min(0).max(255)) };
const tokenSchema = z.strictObject({ ...tokenShape, top_logprobs: z.array(z.strictObject(tokenShape)) });

const partSchema = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.unknown()).max(0),
  logprobs: z.array(tokenSchema).openapi({ description: 'With `include: ["message.output_text.logprobs"]`.' }),
});

export const itemSchema = z.discriminatedUnion('type', [
  z.strictObject({
    id: z.string(),
    type: z.literal('message'),
    status: z.enum(itemStatuses),
    role: z.literal('assistant'),
    content: z.array(partSchema),
  }),
  z.strictObject({
    id: z.string(),
    type: z.literal('function_call'),
    status: z.enum(itemStatuses),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string().openapi({ description: 'JSON; incomplete if the text was cut off.' }),
  }),
]);
export type ItemView = z.infer<typeof itemSchema>;

export function logprobViews(tokens: readonly TokenLogprob[]): z.infer<typeof tokenSchema>[] {
  return tokens.map(({ token, logprob, bytes, top }) => ({
    token,
    logprob,
    bytes: [...bytes],
    top_logprobs: top.map((other) => ({ ...other, bytes: [...other.bytes] })),
  }));
}

export function partView(text: string, tokens: readonly TokenLogprob[] = []): z.infer<typeof partSchema> {
  return { type: 'output_text', text, annotations: [], logprobs: logprobViews(tokens) };
}

/** @param hasEnded the response has ended: items that are still in progress are incomplete. */
export function itemView(item: ResponseItem, hasEnded: boolean): ItemView {
  const { type, id } = item;
  const status = hasEnded && item.status === 'in_progress' ? 'incomplete' : item.status;
  if (type === 'message') return { id, type, status, role: 'assistant', content: [partView(item.text, item.tokens)] };
  return { id, type, status, call_id: item.callId, name: item.name, arguments: item.arguments };
}
