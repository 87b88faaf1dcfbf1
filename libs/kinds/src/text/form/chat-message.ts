/** A chat message in OpenAI's format, with its content as one string. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  /** Other fields that templates read, such as `tool_calls` and `tool_call_id`. */
  readonly [field: string]: unknown;
}
