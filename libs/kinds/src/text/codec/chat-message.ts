/** A message as OpenAI's clients send it, its content as one text. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  /** What else templates read, such as `tool_calls` and `tool_call_id`. */
  readonly [field: string]: unknown;
}
