/** Where the bytes of requests are kept that Redis is not to hold: outputs, previews and checkpoints of pictures. */

import { DarkroomError } from '@darkroom/core';

/**
 * What is put under a name is never changed: another delivery has other names. So whoever reads gets all of it or nothing.
 * Everything rejects with an `unavailable` (DarkroomError) when the store cannot do it now.
 */
export interface ByteStore {
  /** All or nothing. Names have parts of a-z, A-Z, 0-9, ".", "_" and "-", with slashes between them. */
  put(name: string, data: Uint8Array): Promise<void>;
  /** Bytes `from` to before `to`. Undefined when there is nothing (any more) under that name. */
  get(name: string, range: { from: number; to: number }): Promise<Buffer | undefined>;
  /** All names that begin with `prefix`, which ends with a slash, in pages of 1,000 or fewer; what was left half written too. */
  list(prefix: string): AsyncGenerator<readonly string[], void>;
  /** 1,000 or fewer. Those that are not there are passed over. */
  remove(names: readonly string[]): Promise<void>;
  /** A URL that gives it to whoever holds it, for so many seconds. Clients do not reach every store. */
  readonly link?: ((name: string, options: { contentType: string; seconds: number }) => Promise<string>) | undefined;
}

/** What takes the place of bytes in Redis. */
export interface BytesReference {
  name: string;
  from: number;
  to: number;
}

/** No picture begins with it, and no checkpoint: those begin with how far they are. A text may, and is never taken for one. */
const mark = '\0at ';

/** What comes behind a request's folder. */
const insidePattern = /^(?:inputs|outputs|work)\/[\w-][\w.-]*$/;

export function encodeReference({ name, from, to }: BytesReference): Buffer {
  return Buffer.from(`${mark}${from} ${to} ${name}`, 'latin1');
}

/**
 * Undefined for the bytes themselves.
 *
 * @param folder what the name has to begin with: a request has nothing elsewhere, whatever its bytes look like.
 */
export function decodeReference(held: Uint8Array, folder: string): BytesReference | undefined {
  const { buffer, byteOffset, byteLength } = held;
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

/** What a store throws that cannot do it now. */
export function bytesUnavailable(what: keyof ByteStore, cause: unknown): DarkroomError {
  const message = 'The store of pictures cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', `store.bytes.${what}`, message, cause);
}
