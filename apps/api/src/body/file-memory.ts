import { WakeSignal, valueOfKey } from '@darkroom/core';
import { overloaded } from '../http/api-error.ts';
import { clientGone, type Waiter } from './take-turn.ts';

export interface FileMemoryOptions {
  /** Maximum bytes of all files together. */
  maxBytes: number;
  /** Maximum bytes of one owner's files together. */
  maxOwnerBytes: number;
  /** Maximum wait for memory, ms. */
  waitMs: number;
}

export interface FileWaiter extends Waiter {
  /** The request holds another file in memory, so this one must not wait: two such requests could deadlock. */
  holdsOtherFile?: boolean;
}

/** A file's wait for more memory. */
interface PendingGrow {
  bytes: number;
  isGranted: boolean;
  settled: WakeSignal;
}

/** Waiting files, oldest first, that are retried when memory is freed. Limited, because a retry scans all files. */
const maxRetries = 64;
/** Passes over the files after which `isSafe` gives up and returns false. */
const maxPasses = 16;

/** Memory budget of one owner's files, or of all files. */
class Scope {
  readonly files = new Set<FileShare>();
  /** Bytes. */
  free: number;

  constructor(maxBytes: number) {
    this.free = maxBytes;
  }

  /**
   * Returns true if there is an order in which all files can complete, each with the memory that earlier ones free
   * (banker's algorithm). May return false for a safe state after `maxPasses`.
   */
  isSafe(): boolean {
    let { free } = this;
    let rest = [...this.files];
    for (let passes = 0; passes < maxPasses && free >= 0; passes++) {
      const blocked = rest.filter(({ left }) => left > free);
      if (blocked.length === 0) return true;
      const before = free;
      for (const { left, bytes } of rest) if (left <= before) free += bytes;
      if (free === before) return false;
      rest = blocked;
    }
    return false;
  }
}

/** Memory that one file holds while it arrives and until it is freed. */
export class FileShare {
  bytes = 0;
  /** Maximum bytes that may still arrive. */
  left: number;
  readonly owner: string;
  readonly #memory: FileMemory;
  readonly #waiter: FileWaiter;

  constructor(memory: FileMemory, maxBytes: number, waiter: FileWaiter) {
    this.#memory = memory;
    this.left = maxBytes;
    this.owner = waiter.owner;
    this.#waiter = waiter;
  }

  /** Waits for memory for more bytes. Throws 503 on timeout, and 400 if the client disconnects. */
  async grow(bytes: number): Promise<void> {
    // Bytes beyond the file's or the owner's limit are not counted.
    const more = Math.min(bytes, this.left);
    if (more > 0) await this.#memory.grow(this, more, this.#waiter);
  }

  /** Marks the file as complete and frees the memory that it holds beyond `bytes`. */
  complete(bytes: number): void {
    this.#memory.shrink(this, bytes);
  }

  /** Frees the memory of the file. Idempotent. */
  free(): void {
    this.#memory.shrink(this, 0);
  }
}

/**
 * Bounds the memory of image files that clients upload or link to. Counts bytes as they arrive, so that an idle
 * connection holds none. Grants memory to a file only if all incomplete files can still complete: no deadlock.
 */
export class FileMemory {
  readonly #options: FileMemoryOptions;
  readonly #all: Scope;
  readonly #owners = new Map<string, Scope>();
  readonly #scopesOf = new Map<FileShare, readonly Scope[]>();
  readonly #waiting = new Map<FileShare, PendingGrow>();

  constructor(options: FileMemoryOptions) {
    this.#options = options;
    this.#all = new Scope(options.maxBytes);
  }

  /** Opens a file of at most `maxBytes`. Owner `''`: all anonymous clients, which together may use the full memory. */
  open(maxBytes: number, waiter: FileWaiter): FileShare {
    const { owner } = waiter;
    const limit = owner === '' ? this.#options.maxBytes : this.#options.maxOwnerBytes;
    const ownerScope = this.#owners.get(owner) ?? new Scope(limit);
    this.#owners.set(owner, ownerScope);
    const file = new FileShare(this, Math.min(maxBytes, limit), waiter);
    const scopes = [this.#all, ownerScope];
    this.#scopesOf.set(file, scopes);
    for (const { files } of scopes) files.add(file);
    return file;
  }

  /** Implements `FileShare.grow`. */
  async grow(file: FileShare, bytes: number, { signal, holdsOtherFile = false }: FileWaiter): Promise<void> {
    if (signal.aborted) throw clientGone(signal.reason);
    if (this.#tryGrow(file, bytes)) return;
    if (holdsOtherFile) throw overloaded();
    const pending = { bytes, isGranted: false, settled: new WakeSignal() };
    this.#waiting.set(file, pending);
    await pending.settled.wait({ timeoutMs: this.#options.waitMs, signal });
    if (pending.isGranted) return;
    this.#waiting.delete(file);
    throw signal.aborted ? clientGone(signal.reason) : overloaded();
  }

  /** Implements `FileShare.complete` and `FileShare.free`. */
  shrink(file: FileShare, bytes: number): void {
    const scopes = this.#scopesOf.get(file);
    if (scopes === undefined) return;
    for (const scope of scopes) scope.free += file.bytes - Math.min(bytes, file.bytes);
    file.bytes = Math.min(bytes, file.bytes);
    file.left = 0;
    if (file.bytes === 0) this.#forget(file, scopes);
    this.#admit();
  }

  #forget(file: FileShare, scopes: readonly Scope[]): void {
    this.#scopesOf.delete(file);
    this.#waiting.get(file)?.settled.wake();
    this.#waiting.delete(file);
    for (const { files } of scopes) files.delete(file);
    const { owner } = file;
    if (this.#owners.get(owner)?.files.size === 0) this.#owners.delete(owner);
  }

  #tryGrow(file: FileShare, bytes: number): boolean {
    const scopes = valueOfKey(this.#scopesOf, file);
    this.#move(file, scopes, bytes);
    if (scopes.every((scope) => scope.isSafe())) return true;
    this.#move(file, scopes, -bytes);
    return false;
  }

  #move(file: FileShare, scopes: readonly Scope[], bytes: number): void {
    file.bytes += bytes;
    file.left -= bytes;
    for (const scope of scopes) scope.free -= bytes;
  }

  #admit(): void {
    for (const [file, pending] of [...this.#waiting].slice(0, maxRetries)) {
      if (!this.#tryGrow(file, pending.bytes)) continue;
      this.#waiting.delete(file);
      pending.isGranted = true;
      pending.settled.wake();
    }
  }
}
