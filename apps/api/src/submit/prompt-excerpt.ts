/** Max. length of an excerpt, UTF-16 units. */
const maxLength = 300;

/**
 * Returns the first characters of the prompt of a validated body, or of the last message of a conversation; undefined
 * if it has no text.
 */
export function promptExcerpt(body: unknown): string | undefined {
  const { prompt, messages } = body as { prompt?: unknown; messages?: unknown };
  const text = textIn(prompt) ?? (Array.isArray(messages) ? textIn((messages.at(-1) as Message).content) : undefined);
  // Half a surrogate pair is no character.
  return text?.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '');
}

interface Message {
  content?: unknown;
}

/** Returns a text, or the first text in the parts of a message. */
function textIn(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  const part = content.find((each: unknown) => typeof (each as { text?: unknown } | null)?.text === 'string');
  return (part as { text: string } | undefined)?.text;
}
