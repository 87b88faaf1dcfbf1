/** Formats a server-sent event. Text of several lines becomes several lines of its field; objects become JSON. */
export function sseFrame(fields: Readonly<Record<string, string | object>>): string {
  const lines = Object.entries(fields).map(
    ([name, value]) =>
      `${name}: ${typeof value === 'string' ? value.replaceAll('\n', `\n${name}: `) : JSON.stringify(value)}\n`,
  );
  return `${lines.join('')}\n`;
}

/** SSE comment that keeps proxies from closing an idle connection. */
export const heartbeatFrame = ': heartbeat\n\n';
/** Last frame of a complete stream, as in OpenAI's API. */
export const doneFrame = sseFrame({ data: '[DONE]' });
