/** Pages of the input items of a response, for `GET /v1/responses/{id}/input_items`. */
import { type TextMessage, textOf } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField } from '../http/api-error.ts';

const roles = ['user', 'assistant', 'system', 'tool'] as const;

const base = { id: z.string(), status: z.literal('completed') };
const inputItemSchema = z.discriminatedUnion('type', [
  z.strictObject({
    ...base,
    type: z.literal('message'),
    role: z.enum(roles),
    content: z.array(
      z.union([
        z.strictObject({ type: z.enum(['input_text', 'output_text']), text: z.string() }),
        z.strictObject({
          type: z.literal('input_image'),
          image_url: z.string(),
          detail: z.enum(['auto', 'low', 'high']),
          file_id: z.null(),
        }),
      ]),
    ),
  }),
  z.strictObject({
    ...base,
    type: z.literal('function_call'),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({ ...base, type: z.literal('function_call_output'), call_id: z.string(), output: z.string() }),
]);
type InputItemView = z.infer<typeof inputItemSchema>;

export const inputItemsSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(inputItemSchema),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .openapi('ResponseInputItems');

const maxItems = 100;
const defaultItems = 20;
export const limitExpected = `a whole number from 1 to ${maxItems}`;
export const itemsLimit = z.coerce.number().int().min(1).max(maxItems);
export const orderExpected = 'asc or desc';
export const itemsOrder = z.enum(['asc', 'desc']);

/** Lists a page of the items, newest first by default, as OpenAI does. Throws 400 if `after` is not the id of one. */
export function listInputItems(
  messages: readonly TextMessage[],
  { limit = defaultItems, order = 'desc', after }: { limit?: number; order?: 'asc' | 'desc'; after?: string },
): z.infer<typeof inputItemsSchema> {
  const items = messages.flatMap((message, at) => itemsOf(message, at));
  if (order === 'desc') items.reverse();
  const position = after === undefined ? -1 : items.findIndex(({ id }) => id === after);
  if (after !== undefined && position < 0)
    throw invalidField('after', after, 'the id of an input item of this response');
  const data = items.slice(position + 1, position + 1 + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: position + 1 + limit < items.length,
  };
}

type PartView = Extract<InputItemView, { type: 'message' }>['content'][number];

function partOf(part: Exclude<TextMessage['content'], string>[number], type: 'input_text' | 'output_text'): PartView {
  if (part.type === 'text') return { type, text: part.text };
  const { url, detail = 'auto' } = part.image_url;
  return { type: 'input_image', image_url: url, detail, file_id: null };
}

function itemsOf({ role, content, tool_calls: calls, tool_call_id }: TextMessage, at: number): InputItemView[] {
  const status = 'completed' as const;
  if (role === 'tool')
    return [
      {
        id: `fco_in_${at}`,
        type: 'function_call_output',
        status,
        call_id: String(tool_call_id),
        output: textOf(content),
      },
    ];
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  const shownRole = roles.find((one) => one === role) ?? 'user';
  const message: InputItemView = {
    id: `msg_in_${at}`,
    type: 'message',
    status,
    role: shownRole,
    content: typeof content === 'string' ? [{ type, text: content }] : content.map((part) => partOf(part, type)),
  };
  const made = (calls ?? []).map((call, index): InputItemView => {
    const { id, function: called } = call as { id: string; function: { name: string; arguments: string } };
    const { name, arguments: json } = called;
    return { id: `fc_in_${at}_${index}`, type: 'function_call', status, call_id: id, name, arguments: json };
  });
  return content === '' && made.length > 0 ? made : [message, ...made];
}
