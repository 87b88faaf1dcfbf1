import { unavailable } from '../../calls/backend-error.ts';

const lineFeed = 10;

/**
 * Yields the lines of a byte stream, without line ends. Decodes complete lines: a character may span two chunks.
 *
 * @param maxBytes max size of a line, which bounds the buffer.
 * @throws UpstreamError `unavailable` if a line exceeds `maxBytes` or is not UTF-8, or if the last line has no end.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const append = (part: Uint8Array): void => {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw unavailable(`sent a line of more than ${maxBytes} bytes, expected a shorter one`);
    parts.push(part);
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(lineFeed); to >= 0; to = chunk.indexOf(lineFeed, from)) {
      append(chunk.subarray(from, to));
      const line = decode(decoder, Buffer.concat(parts));
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
      parts = [];
      bytes = 0;
      from = to + 1;
    }
    if (from < chunk.byteLength) append(chunk.subarray(from));
  }
  if (bytes > 0) throw unavailable('sent half a line, expected its end');
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw unavailable('sent bytes that are not UTF-8, expected text', cause);
  }
}
