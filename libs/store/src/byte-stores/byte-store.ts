/** Byte store: outputs, previews, checkpoints and attachments of requests that are stored outside Redis. */

import { DarkroomError } from '@darkroom/core';

/**
 * A store of immutable blobs. A name is written once (each delivery uses its own names), so a reader gets all bytes or
 * none. Every call rejects with DarkroomError `unavailable` while the store cannot serve it.
 */
export interface ByteStore {
  /** Writes all bytes or none. A name is path segments of a-z, A-Z, 0-9, ".", "_" and "-", separated by slashes. */
  put(name: string, data: Uint8Array): Promise<void>;
  /** Reads the bytes from `from` (inclusive) to `to` (exclusive). Undefined if the name does not exist (any more). */
  get(name: string, range: { from: number; to: number }): Promise<Buffer | undefined>;
  /**
   * Yields all names under `prefix` (ends with a slash) in pages of at most 1,000. Includes partially written files,
   * and empty folders, whose names end with a slash.
   */
  list(prefix: string): AsyncGenerator<readonly string[], void>;
  /** Removes at most 1,000 files or empty folders. Ignores those that do not exist. */
  remove(names: readonly string[]): Promise<void>;
  /** Returns a URL that serves the bytes to any client for `seconds`. Absent if clients cannot reach the store. */
  readonly link?: ((name: string, options: { contentType: string; seconds: number }) => Promise<string>) | undefined;
}

/** Stored in Redis in place of the bytes: their name in the byte store and the range. */
export interface BytesReference {
  name: string;
  from: number;
  to: number;
}

/**
 * Prefix of an encoded reference. No image and no checkpoint begins with it; a text may, so texts are never decoded.
 */
const mark = '\0at ';

/** Matches a name inside the folder of a request. */
const insidePattern = /^(?:inputs|outputs|work)\/[\w-][\w.-]*$/;

export function encodeReference({ name, from, to }: BytesReference): Buffer {
  return Buffer.from(`${mark}${from} ${to} ${name}`, 'latin1');
}

/** Returns true for a value that may be an encoded reference. */
export function isReference(value: Uint8Array): boolean {
  return (
    Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, mark.length)).toString('latin1') === mark
  );
}

/**
 * Returns undefined if `value` is the bytes themselves.
 *
 * @param folder of the request. Other names are not accepted: bytes made by a client may look like a reference.
 */
export function decodeReference(value: Uint8Array, folder: string): BytesReference | undefined {
  const { buffer, byteOffset, byteLength } = value;
  const text = Buffer.from(buffer, byteOffset, Math.min(byteLength, 512)).toString('latin1');
  if (!text.startsWith(mark)) return undefined;
  const {
    from,
    to,
    name = '',
  } = /^(?<from>\d{1,15}) (?<to>\d{1,15}) (?<name>\S+)$/.exec(text.slice(mark.length))?.groups ?? {};
  if (!name.startsWith(folder) || !insidePattern.test(name.slice(folder.length))) return undefined;
  return { name, from: Number(from), to: Number(to) };
}

/** Builds the error for a failed call. */
export function bytesUnavailable(call: keyof ByteStore, cause: unknown): DarkroomError {
  const message = 'The store of images cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', `store.bytes.${call}`, message, cause);
}
