/** Formats a server-sent event. Text of several lines becomes several lines of its field; objects become JSON. */
export function sseFrame(fields: Readonly<Record<string, string | object>>): string {
  let lines = '';
  for (const [name, value] of Object.entries(fields)) {
    const text = typeof value === 'string' ? value.replaceAll('\n', `\n${name}: `) : JSON.stringify(value);
    lines += `${name}: ${text}\n`;
  }
  return `${lines}\n`;
}

/** SSE comment that keeps proxies from closing an idle connection. */
export const heartbeatFrame = ': heartbeat\n\n';
/** Last frame of a complete stream, as in OpenAI's API. */
export const doneFrame = sseFrame({ data: '[DONE]' });
