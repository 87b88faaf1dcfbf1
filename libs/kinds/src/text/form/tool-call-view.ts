/** A tool call in OpenAI's format. */
import { z } from 'zod';
import type { ParsedToolCall } from './call-reader.ts';

export const toolCallSchema = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string(),
    arguments: z.string().meta({ description: 'JSON; incomplete if the text was cut.' }),
  }),
});
export type ToolCallView = z.infer<typeof toolCallSchema>;

/** Position of a call: the request's id, the index of the text, and the index of the call in it. */
export interface CallPosition {
  id: string;
  index: number;
  at: number;
}

/** Returns the id of a call; deterministic, so that all replicas agree. */
export function toolCallId({ id, index, at }: CallPosition): string {
  return `call_${id}_${index}_${at}`;
}

export function toolCallView({ name, arguments: json }: ParsedToolCall, place: CallPosition): ToolCallView {
  return { id: toolCallId(place), type: 'function', function: { name, arguments: json } };
}
