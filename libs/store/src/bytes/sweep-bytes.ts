import { isOurRequestId, timeOfRequestId } from '@darkroom/core';
import { readTime } from '../connection/read-time.ts';
import { readIdSecret } from '../requests/request-ids.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** How long it may be from a request's id to its admission: what came with it is stored between. */
const admissionMs = 60_000;

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
        if (state === 'ended' || state === 'stripped')
          return folder === 'work' || (folder === 'inputs' && state === 'stripped');
        // One that can still be asked for is no more because Redis has lost it, and Redis may come back. Or it is about to be stored.
        const patienceMs = folder === 'inputs' ? Math.max(resultTtlMs, admissionMs) : resultTtlMs;
        return state === 'gone' && nowMs - timeOfRequestId(id) > patienceMs;
      })
      .map(({ name }) => name);
  }

  /** `stripped`: ended, and what was private of it is gone. */
  async #stateOf(id: string): Promise<'open' | 'ended' | 'stripped' | 'gone'> {
    const [state, endedAtMs, stripped] = await this.#store.redis.hmget(
      this.#store.keysOfRequest(id)!.request(id),
      'state',
      'endedAtMs',
      'stripped',
    );
    if (state === null) return 'gone';
    if (endedAtMs === null) return 'open';
    return stripped === null ? 'ended' : 'stripped';
  }
}
