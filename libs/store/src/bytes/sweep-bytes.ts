import { isOurRequestId, timeOfRequestId } from '@darkroom/core';
import { readTime } from '../connection/read-time.ts';
import { readIdSecret } from '../requests/request-ids.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * Removes bytes that nobody can ask for any more: what requests have left whose time is over, and what was of use while they ran.
 * Only those under ids of this system, since the place may be shared. Goes round and round, a page for each call; safe to run in
 * any number of janitors at once.
 */
export class BytesSweeper {
  readonly #store: StoreConnection;
  #pages: AsyncGenerator<readonly string[], void> | undefined;

  constructor(store: StoreConnection) {
    this.#store = store;
  }

  /** How many were removed. Two round trips to Redis at most, and two to where they are kept. */
  async sweepPage(): Promise<number> {
    const { bytes, prefix } = this.#store;
    if (bytes === undefined) return 0;
    this.#pages ??= bytes.list(`${prefix}/`);
    // One that throws has ended; the next call begins anew.
    const { value: names, done } = await this.#pages.next();
    if (done === true) this.#pages = undefined;
    const useless = await this.#findUseless(names ?? []);
    if (useless.length > 0) await bytes.remove(useless);
    return useless.length;
  }

  async #findUseless(names: readonly string[]): Promise<string[]> {
    const { prefix, resultTtlMs } = this.#store;
    const [secret, nowMs] = await Promise.all([readIdSecret(this.#store), readTime(this.#store)]);
    const parts = names.map((name) => ({ name, path: name.slice(prefix.length + 1).split('/') }));
    const isOurs = (id: string): boolean => isOurRequestId(id, { owner: undefined, secret });
    const ids = [...new Set(parts.map(({ path }) => path[0]!))].filter(isOurs);
    const states = new Map(await Promise.all(ids.map(async (id) => [id, await this.#stateOf(id)] as const)));
    return parts
      .filter(({ path: [id = '', folder] }) => {
        const state = states.get(id);
        if (state === 'ended') return folder === 'work';
        // One that can still be asked for is no more because Redis has lost it, and Redis may come back.
        return state === 'gone' && nowMs - timeOfRequestId(id) > resultTtlMs;
      })
      .map(({ name }) => name);
  }

  async #stateOf(id: string): Promise<'open' | 'ended' | 'gone'> {
    const [state, endedAtMs] = await this.#store.redis.hmget(
      this.#store.keysOfRequest(id)!.request(id),
      'state',
      'endedAtMs',
    );
    if (state === null) return 'gone';
    return endedAtMs === null ? 'open' : 'ended';
  }
}
