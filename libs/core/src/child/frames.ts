/**
 * Frames: messages to programs in other languages, over a byte stream. A frame is the length of its header (32 bits,
 * little-endian), the header (`FrameHeader` as JSON in UTF-8), and the bytes that the header lists, in order.
 */

interface FrameHeader {
  /** The message, with null in place of bytes. */
  readonly message: unknown;
  /** Path and length of each value of the message that is bytes. */
  readonly bytes: readonly (readonly [path: readonly string[], length: number])[];
}

export interface FrameLimits {
  readonly maxHeaderBytes: number;
  /** Max sum of the bytes behind the header. */
  readonly maxBytes: number;
}

const lengthBytes = 4;

/** Returns the chunks of a frame. `Uint8Array` values of the message are sent as they are, without a copy. */
export function encodeFrame(message: object): Uint8Array[] {
  const found: { path: string[]; data: Uint8Array }[] = [];
  const bare = withoutBytes(message, [], found);
  const bytes = found.map(({ path, data }) => [path, data.byteLength] as const);
  const header = Buffer.from(JSON.stringify({ message: bare, bytes } satisfies FrameHeader));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(header.length);
  return [length, header, ...found.map(({ data }) => data)];
}

function withoutBytes(value: unknown, path: string[], found: { path: string[]; data: Uint8Array }[]): unknown {
  if (value instanceof Uint8Array) {
    found.push({ path, data: value });
    return null;
  }
  if (Array.isArray(value)) return value.map((each, at) => withoutBytes(each, [...path, String(at)], found));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [name, withoutBytes(field, [...path, name], found)]);
  return Object.fromEntries(entries) as object;
}

/** Reads frames from the chunks of a byte stream. */
export class FrameReader {
  readonly #limits: FrameLimits;
  #chunks: Buffer[] = [];
  #size = 0;
  #header: FrameHeader | undefined;
  /** Number of bytes that the next part of the frame needs. */
  #needed = lengthBytes;
  #isLength = true;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** Yields the messages that the chunk completes. @throws Error if the stream violates the format or a limit. */
  *push(chunk: Buffer): Generator<unknown, void> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= this.#needed) {
      const part = this.#take(this.#needed);
      if (this.#header !== undefined) yield this.#finish(this.#header, part);
      else if (this.#isLength) this.#expect(part.readUInt32LE(), this.#limits.maxHeaderBytes, 'header');
      else {
        const header = parseHeader(part);
        if (header.bytes.length === 0) yield this.#finish(header, Buffer.alloc(0));
        else {
          this.#header = header;
          const total = header.bytes.reduce((sum, [, length]) => sum + length, 0);
          this.#expect(total, this.#limits.maxBytes, 'payload');
        }
      }
    }
  }

  #expect(length: number, max: number, part: string): void {
    if (length > max) throw new Error(`a frame's ${part} has ${length} bytes, expected at most ${max}`);
    this.#needed = length;
    this.#isLength = false;
  }

  #finish({ message, bytes }: FrameHeader, payload: Buffer): unknown {
    let offset = 0;
    for (const [path, length] of bytes) setBytes(message, path, payload.subarray(offset, (offset += length)));
    this.#header = undefined;
    this.#needed = lengthBytes;
    this.#isLength = true;
    return message;
  }

  #take(length: number): Buffer {
    const [first] = this.#chunks;
    const all = first !== undefined && first.length >= length ? first : Buffer.concat(this.#chunks, this.#size);
    const others = all === first ? this.#chunks.slice(1) : [];
    const rest = all.subarray(length);
    this.#chunks = rest.length > 0 ? [rest, ...others] : others;
    this.#size -= length;
    return all.subarray(0, length);
  }
}

function parseHeader(data: Buffer): FrameHeader {
  const { message, bytes } = (JSON.parse(data.toString()) ?? {}) as Partial<Record<keyof FrameHeader, unknown>>;
  if (!Array.isArray(bytes) || !bytes.every((each) => isPart(each)))
    throw new Error("a frame's header has no list of paths and lengths");
  return { message, bytes };
}

function isPart(value: unknown): value is FrameHeader['bytes'][number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [path, length] = value as unknown[];
  const isPath = Array.isArray(path) && path.length > 0 && path.every((name) => typeof name === 'string');
  return isPath && Number.isSafeInteger(length) && (length as number) >= 0;
}

/** Puts bytes in the place of a null of the message: the path must exist, so it cannot reach a prototype. */
function setBytes(message: unknown, path: readonly string[], data: Uint8Array): void {
  let target = message;
  for (const [at, name] of path.entries()) {
    const isPresent = typeof target === 'object' && target !== null && Object.hasOwn(target, name);
    const isLast = at === path.length - 1;
    if (!isPresent || (isLast && (target as Record<string, unknown>)[name] !== null))
      throw new Error("a frame's header lists bytes whose place in the message is not null");
    if (isLast) (target as Record<string, unknown>)[name] = data;
    else target = (target as Record<string, unknown>)[name];
  }
}
