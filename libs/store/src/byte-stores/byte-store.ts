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

/** Builds the error for a failed call. */
export function bytesUnavailable(call: keyof ByteStore, cause: unknown): DarkroomError {
  const message = 'The store of images cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', `store.bytes.${call}`, message, cause);
}
