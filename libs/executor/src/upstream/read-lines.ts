import { unavailable } from './upstream-error.ts';

const lineFeed = 10;

/**
 * The lines of a stream of bytes, without their ends. A line is decoded as a whole, so a character may be cut between two chunks.
 *
 * @param mostBytes of a line; what is longer is never kept.
 * @throws UpstreamError `unavailable` for a line that is longer, is no UTF-8, or has no end.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const keep = (part: Uint8Array): void => {
    bytes += part.byteLength;
    if (bytes > mostBytes) throw unavailable(`sent a line of more than ${mostBytes} bytes, expected a shorter one`);
    parts.push(part);
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(lineFeed); to >= 0; to = chunk.indexOf(lineFeed, from)) {
      keep(chunk.subarray(from, to));
      const line = decode(decoder, parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
      parts = [];
      bytes = 0;
      from = to + 1;
    }
    if (from < chunk.byteLength) keep(chunk.subarray(from));
  }
  if (bytes > 0) throw unavailable('sent half a line, expected its end');
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw unavailable('sent bytes that are no UTF-8, expected text', cause);
  }
}
