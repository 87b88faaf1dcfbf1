/** A call of a tool as OpenAI's clients know it. */
import { z } from 'zod';
import type { ToolCall } from './call-reader.ts';

export const toolCallSchema = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string(),
    arguments: z.string().meta({ description: 'JSON; the beginning of it where the text was cut.' }),
  }),
});
export type ToolCallView = z.infer<typeof toolCallSchema>;

/** Where a call stands: in which text of which request, and which one of it. */
export interface CallPlace {
  id: string;
  index: number;
  at: number;
}

/** The same at every replica at any time. */
export function toolCallId({ id, index, at }: CallPlace): string {
  return `call_${id}_${index}_${at}`;
}

export function toolCallView({ name, arguments: json }: ToolCall, place: CallPlace): ToolCallView {
  return { id: toolCallId(place), type: 'function', function: { name, arguments: json } };
}
