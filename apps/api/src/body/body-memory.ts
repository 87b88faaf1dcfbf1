/**
 * Counts the bytes of request bodies in memory as they arrive, so that idle connections reserve nothing. Past the
 * limit, the body that needs more is rejected and frees its bytes; waiting bodies would hold theirs and deadlock.
 */
export class BodyMemory {
  readonly #maxOwnerBytes: number;
  readonly #bytesByOwner = new Map<string, number>();
  #bytes = 0;

  /** One owner may use half of `maxBytes`. */
  constructor(maxBytes: number) {
    this.#maxOwnerBytes = maxBytes / 2;
  }

  /** Reserves bytes for an owner; returns false if the limit is reached. */
  take(owner: string, bytes: number): boolean {
    const ownerBytes = (this.#bytesByOwner.get(owner) ?? 0) + bytes;
    if (ownerBytes > this.#maxOwnerBytes || this.#bytes + bytes > 2 * this.#maxOwnerBytes) return false;
    this.#bytes += bytes;
    this.#bytesByOwner.set(owner, ownerBytes);
    return true;
  }

  /** Frees reserved bytes. */
  free(owner: string, bytes: number): void {
    const left = (this.#bytesByOwner.get(owner) ?? 0) - bytes;
    this.#bytes -= bytes;
    if (left > 0) this.#bytesByOwner.set(owner, left);
    else this.#bytesByOwner.delete(owner);
  }
}
