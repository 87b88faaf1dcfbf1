import { createHash } from 'node:crypto';

/** Files that came with a body, in memory for as long as they are needed. */
export class Uploads {
  readonly #files: Map<string, Uint8Array>;
  readonly #giveBack: () => void;

  /** @param giveBack gives back the room that the files take. */
  constructor(files: ReadonlyMap<string, Uint8Array>, giveBack: () => void) {
    this.#files = new Map(files);
    this.#giveBack = giveBack;
  }

  get names(): string[] {
    return [...this.#files.keys()];
  }

  /** Of all of them. */
  get byteLength(): number {
    return [...this.#files.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  get(name: string): Uint8Array | undefined {
    return this.#files.get(name);
  }

  /** What stands for the files where a key stands for a body. */
  hashes(): Record<string, string> {
    return Object.fromEntries([...this.#files].map(([name, data]) => [name, hashOf(data)]));
  }

  /** Nobody needs them any more. Again does nothing. */
  release(): void {
    this.#files.clear();
    this.#giveBack();
  }
}

function hashOf(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
