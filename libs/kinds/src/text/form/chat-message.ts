/** A part of a message as templates of vision-language models read it. */
export type ChatPart = { readonly type: 'text'; readonly text: string } | { readonly type: 'image' };

/** A chat message as templates read it: its content is one string, or parts if it has images. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string | readonly ChatPart[];
  /** Other fields that templates read, such as `tool_calls` and `tool_call_id`. */
  readonly [field: string]: unknown;
}
