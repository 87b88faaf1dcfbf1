import { readLines } from './read-lines.ts';
import { unavailable } from '../../calls/backend-error.ts';

/** OpenAI's mark for the end of a stream; not JSON. */
const doneMark = '[DONE]';

/**
 * Yields the data of server-sent events, parsed as JSON, until the stream or `[DONE]` ends. Yields undefined for a
 * comment, which is a liveness signal; event names are ignored.
 *
 * @param maxBytes max size of an event.
 * @throws UpstreamError `unavailable` as `readLines`, and for data that is not JSON.
 */
export async function* readServerSentEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<unknown, void, void> {
  let data: string | undefined;
  for await (const line of readLines(chunks, maxBytes)) {
    if (line === '') {
      if (data === doneMark) return;
      if (data !== undefined) yield parseData(data);
      data = undefined;
    } else if (line.startsWith('data:')) {
      const text = line.slice(line[5] === ' ' ? 6 : 5);
      data = data === undefined ? text : `${data}\n${text}`;
      if (data.length > maxBytes) throw unavailable(`sent an event of more than ${maxBytes} characters`);
    } else if (line.startsWith(':')) yield undefined;
  }
}

function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    // Do not quote the data: it may contain a prompt.
    throw unavailable(`sent an event of ${data.length} characters that is not JSON`, cause);
  }
}
