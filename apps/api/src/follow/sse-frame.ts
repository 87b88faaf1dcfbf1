/** Fields in their order; a value of several lines stands in as many. What is no text is JSON, which has no line breaks. */
export function sseFrame(fields: Readonly<Record<string, string | object>>): string {
  const lines = Object.entries(fields).map(
    ([name, value]) =>
      `${name}: ${typeof value === 'string' ? value.replaceAll('\n', `\n${name}: `) : JSON.stringify(value)}\n`,
  );
  return `${lines.join('')}\n`;
}

/** A comment, so that nobody on the way takes the connection for dead. */
export const heartbeatFrame = ': heartbeat\n\n';
/** The last of a stream that has said all, as of OpenAI. */
export const doneFrame = sseFrame({ data: '[DONE]' });
