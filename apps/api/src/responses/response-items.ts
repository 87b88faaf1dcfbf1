/** What the output of a response has in it: messages, and calls of functions. */
import type { TextMessage, TextOutputFacts } from '@darkroom/kinds';
import { toolCallId } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { idOf } from './response-ids.ts';

export const itemStatuses = ['in_progress', 'completed', 'incomplete'] as const;
export type ItemStatus = (typeof itemStatuses)[number];

export interface ResponseMessage {
  type: 'message';
  id: string;
  status: ItemStatus;
  /** What stands, and stays. */
  text: string;
}

export interface ResponseCall {
  type: 'function_call';
  id: string;
  status: ItemStatus;
  callId: string;
  name: string;
  /** JSON; the beginning of it until it is completed. */
  arguments: string;
}

export type ResponseItem = ResponseMessage | ResponseCall;

/** The first message has the id of its response; what comes later has its place in it. */
export function newMessage(requestId: string, place: number): ResponseMessage {
  const id = idOf('message', requestId);
  return { type: 'message', id: place === 0 ? id : `${id}_${place}`, status: 'in_progress', text: '' };
}

export function newCall(requestId: string, at: number, name: string): ResponseCall {
  const callId = toolCallId({ id: requestId, index: 0, at });
  const id = `${idOf('call', requestId)}_${at}`;
  return { type: 'function_call', id, status: 'in_progress', callId, name, arguments: '' };
}

/** How the last item ends. */
export function endOfItem({ finish_reason: reason }: Pick<TextOutputFacts, 'finish_reason'>): ItemStatus {
  return reason === 'stop' ? 'completed' : 'incomplete';
}

/** An item as a part of a conversation that goes on. */
export function messageOfItem(item: ResponseItem): TextMessage {
  if (item.type === 'message') return { role: 'assistant', content: item.text };
  const { callId: id, name, arguments: json } = item;
  return {
    role: 'assistant',
    content: '',
    tool_calls: [{ id, type: 'function', function: { name, arguments: json } }],
  };
}

/** Text of an answer and calls that follow it are one message to models. */
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

const partSchema = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.unknown()).max(0),
  logprobs: z.array(z.unknown()).max(0),
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
    arguments: z.string().openapi({ description: 'JSON; the beginning of it where the text was cut.' }),
  }),
]);
export type ItemView = z.infer<typeof itemSchema>;

export function partView(text: string): z.infer<typeof partSchema> {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

/** @param isOver whether nothing comes any more. */
export function itemView(item: ResponseItem, isOver: boolean): ItemView {
  const { type, id } = item;
  const status = isOver && item.status === 'in_progress' ? 'incomplete' : item.status;
  if (type === 'message') return { id, type, status, role: 'assistant', content: [partView(item.text)] };
  return { id, type, status, call_id: item.callId, name: item.name, arguments: item.arguments };
}
