import { createHash } from 'node:crypto';

/** Uploaded files of a body, in memory until they are released. */
export class Uploads {
  readonly #files: Map<string, Uint8Array>;
  readonly #freeMemory: () => void;

  /** @param freeMemory frees the memory of the files. */
  constructor(files: ReadonlyMap<string, Uint8Array>, freeMemory: () => void) {
    this.#files = new Map(files);
    this.#freeMemory = freeMemory;
  }

  get names(): string[] {
    return [...this.#files.keys()];
  }

  /** Bytes of all files together. */
  get byteLength(): number {
    return [...this.#files.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  get(name: string): Uint8Array | undefined {
    return this.#files.get(name);
  }

  /** Returns the hash of each file, for the fingerprint of an Idempotency-Key. */
  hashes(): Record<string, string> {
    return Object.fromEntries([...this.#files].map(([name, data]) => [name, hashOf(data)]));
  }

  /** Frees the files. Idempotent. */
  release(): void {
    this.#files.clear();
    this.#freeMemory();
  }
}

function hashOf(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
