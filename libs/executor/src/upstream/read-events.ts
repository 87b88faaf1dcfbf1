import { readLines } from './read-lines.ts';
import { unavailable } from './upstream-error.ts';

/** What stands for the end of a stream at OpenAI's; it is no JSON. */
const doneMark = '[DONE]';

/**
 * The data of server-sent events, each as JSON, until the stream or `[DONE]` ends them. Of a comment, which says that somebody is at it,
 * it is undefined; names of events are passed over.
 *
 * @param mostBytes of an event.
 * @throws UpstreamError `unavailable` as `readLines`, and for data that is no JSON.
 */
export async function* readEvents(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number,
): AsyncGenerator<unknown, void, void> {
  let data: string | undefined;
  for await (const line of readLines(chunks, mostBytes)) {
    if (line === '') {
      if (data === doneMark) return;
      if (data !== undefined) yield parsed(data);
      data = undefined;
    } else if (line.startsWith('data:')) {
      const text = line.slice(line[5] === ' ' ? 6 : 5);
      data = data === undefined ? text : `${data}\n${text}`;
      if (data.length > mostBytes) throw unavailable(`sent an event of more than ${mostBytes} characters`);
    } else if (line.startsWith(':')) yield undefined;
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    // What it says may be of a prompt.
    throw unavailable(`sent an event of ${data.length} characters that is no JSON`, cause);
  }
}
