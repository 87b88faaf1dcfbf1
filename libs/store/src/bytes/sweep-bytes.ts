import { isOurRequestId, timeOfRequestId } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { expiryOfFile } from './file-id.ts';
import { readTime } from '../connection/read-time.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Longest time between the creation of an id and the admission of its request, which stores attachments in between. */
const admissionMs = 60_000;
/** How long the bytes of a file outlive its expiry, for readers that have just looked it up. */
const graceMs = 60_000;

/**
 * Removes bytes that no client can request any more: of expired requests, of expired files, and `work` files of ended
 * requests. Touches only ids of this installation, since the byte store may be shared. Cycles through the store, one
 * page per call; safe to run in several janitors at once.
 */
export class BytesSweeper {
  readonly #store: StoreConnection;
  #pages: AsyncGenerator<readonly string[], void> | undefined;

  constructor(store: StoreConnection) {
    this.#store = store;
  }

  /**
   * Sweeps one page and returns how many files were removed. At most two round trips each to Redis and the byte store.
   */
  async sweepPage(): Promise<number> {
    const { bytes, prefix } = this.#store;
    if (bytes === undefined) return 0;
    this.#pages ??= bytes.list(`${prefix}/`);
    // A generator that throws has ended, so the next call starts a new pass.
    const { value: names, done } = await this.#pages.next();
    if (done === true) this.#pages = undefined;
    const removable = [...(await this.#findRemovable(names ?? [])), ...(await this.#findExpiredFiles(names ?? []))];
    if (removable.length > 0) await bytes.remove(removable);
    return removable.length;
  }

  /** Returns bytes of expired uploads; the id holds the expiry time. Requests read their files before they expire. */
  async #findExpiredFiles(names: readonly string[]): Promise<string[]> {
    const { prefix } = this.#store;
    const files = names.map((name) => {
      const [folder = ''] = name.slice(prefix.length + 1).split('/');
      return { name, expiresAtMs: expiryOfFile(folder) };
    });
    if (files.every(({ expiresAtMs }) => expiresAtMs === undefined)) return [];
    const nowMs = await readTime(this.#store);
    return files.filter(({ expiresAtMs = Infinity }) => expiresAtMs < nowMs - graceMs).map(({ name }) => name);
  }

  async #findRemovable(names: readonly string[]): Promise<string[]> {
    const { prefix, resultTtlMs, redis } = this.#store;
    // Only read the secret: janitors lack the right to create it. Without it, no file can be attributed to this
    // installation.
    const [secret, nowMs] = await Promise.all([redis.get(systemKeys(prefix).idSecret), readTime(this.#store)]);
    if (secret === null) return [];
    const parts = names.map((name) => {
      const [id = '', folder] = name.slice(prefix.length + 1).split('/');
      return { name, id, folder };
    });
    const isOurs = (id: string): boolean => isOurRequestId(id, { owner: undefined, secret });
    const ids = [...new Set(parts.map(({ id }) => id))].filter(isOurs);
    const states = new Map(await Promise.all(ids.map(async (id) => [id, await this.#stateOf(id)] as const)));
    return parts
      .filter(({ name, id, folder }) => {
        const state = states.get(id);
        // Nothing is written to the folders of an ended request.
        if (name.endsWith('/') && (state === 'ended' || state === 'stripped')) return true;
        if (state === 'ended' || state === 'stripped')
          return folder === 'work' || (folder === 'inputs' && state === 'stripped');
        // Wait for the TTL: Redis may have lost the request and get it back, or admission has not stored it yet.
        const retainMs = folder === 'inputs' ? Math.max(resultTtlMs, admissionMs) : resultTtlMs;
        return state === 'gone' && nowMs - timeOfRequestId(id) > retainMs;
      })
      .map(({ name }) => name);
  }

  /** Returns the state of a request. `stripped`: ended, and its private parts (prompt, attachments) were deleted. */
  async #stateOf(id: string): Promise<'open' | 'ended' | 'stripped' | 'gone'> {
    const [state, endedAtMs, stripped] = await this.#store.redis.hmget(
      this.#store.keysOfKnownRequest(id).request(id),
      'state',
      'endedAtMs',
      'stripped',
    );
    if (state === null) return 'gone';
    if (endedAtMs === null) return 'open';
    return stripped === null ? 'ended' : 'stripped';
  }
}
