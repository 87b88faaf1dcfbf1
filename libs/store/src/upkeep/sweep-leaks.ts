/** Keys of requests and workers that are no more, which no script leaves and a hand or a half restored backup may. */
import type { StoreConnection } from '../connection/store-connection.ts';
import { type KeySize, KeySizes } from './key-sizes.ts';

/** Kinds of keys that end with their request, and with their worker, in the names of keys.ts. */
const requestKinds = new Set(['input', 'events', 'previews', 'output', 'checkpoint', 'promptless']);
const workerKinds = new Set(['inbox', 'leases']);

export interface LeakSweep {
  /** Keys that had no TTL although their request has one or is gone: they have one now. */
  repaired: string[];
  /** Keys of workers that are no more, deleted. */
  deleted: string[];
  /** With the last page of a pass: what the keys take, by model and by the kind that stands in their names. */
  sizes: ReadonlyMap<string, ReadonlyMap<string, KeySize>> | undefined;
}

/** A key by the parts of its name. */
type FoundKey = Record<'key' | 'model' | 'kind' | 'subject', string>;

/** Goes round and round the store's keys, a page for each call. */
export class LeakSweeper {
  readonly #store: StoreConnection;
  readonly #pageSize: number;
  #cursor = '0';
  #server = 0;
  #sizes = new Map<string, KeySizes>();

  constructor(store: StoreConnection, { pageSize = 500 }: { pageSize?: number } = {}) {
    this.#store = store;
    this.#pageSize = pageSize;
  }

  /** One page of one server, of about `pageSize` keys whatever the size of the store. Three round trips at most, and one more at the end of a pass. */
  async sweepPage(): Promise<LeakSweep> {
    const servers = this.#store.masters();
    const server = servers[this.#server % servers.length]!;
    const pattern = `${escapeGlob(this.#store.prefix)}:v2:*`;
    const [cursor, page] = await server.scan(this.#cursor, 'MATCH', pattern, 'COUNT', this.#pageSize);
    this.#cursor = cursor;
    const found = page.map((key) => this.#describe(key)).filter((key) => key !== undefined);
    const [repaired, deleted] = await Promise.all([this.#repair(found), this.#deleteOrphans(found)]);
    if (cursor !== '0') return { repaired, deleted, sizes: undefined };
    this.#server = (this.#server + 1) % servers.length;
    return { repaired, deleted, sizes: this.#server === 0 ? await this.#takeSizes() : undefined };
  }

  #describe(key: string): FoundKey | undefined {
    const parts = /^\{(?<model>[^}]+)\}:(?<kind>[^:]+):?(?<subject>[^:]*)/.exec(
      key.slice(`${this.#store.prefix}:v2:`.length),
    );
    if (parts?.groups === undefined) return undefined;
    const { model = '', kind = '', subject = '' } = parts.groups;
    const sizes = this.#sizes.get(model) ?? new KeySizes();
    this.#sizes.set(model, sizes);
    sizes.note(kind, key);
    return { key, model, kind, subject };
  }

  async #repair(found: readonly FoundKey[]): Promise<string[]> {
    const { redis, resultTtlMs } = this.#store;
    const mortal = found.filter(({ kind }) => requestKinds.has(kind));
    const ttls = await Promise.all(
      mortal.flatMap(({ key, model, subject }) => [
        redis.pttl(key),
        redis.pttl(this.#store.keysOf(model).request(subject)),
      ]),
    );
    // An open request and what belongs to it have none.
    const leaks = mortal.filter((_key, index) => ttls[2 * index] === -1 && ttls[2 * index + 1] !== -1);
    await Promise.all(leaks.map(({ key }) => redis.pexpire(key, resultTtlMs)));
    return leaks.map(({ key }) => key);
  }

  async #deleteOrphans(found: readonly FoundKey[]): Promise<string[]> {
    const { redis } = this.#store;
    const owned = found.filter(({ kind }) => workerKinds.has(kind));
    const alive = await Promise.all(
      owned.map(({ model, subject }) => redis.exists(this.#store.keysOf(model).worker(subject))),
    );
    const orphans = owned.filter((_key, index) => alive[index] === 0).map(({ key }) => key);
    await Promise.all(orphans.map((key) => redis.del(key)));
    return orphans;
  }

  async #takeSizes(): Promise<Map<string, Map<string, KeySize>>> {
    const noted = this.#sizes;
    this.#sizes = new Map();
    const measured = [...noted].map(async ([model, sizes]) => [model, await sizes.measure(this.#store)] as const);
    return new Map(await Promise.all(measured));
  }
}

/** A text as a pattern that matches it alone. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}
