/** Keys of requests and workers that are no more, which no script leaves and a hand or a half restored backup may. */
import { modelOfShard } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Kinds of keys that end with their request, and with their worker, in the names of keys.ts. */
const requestKinds = new Set(['input', 'inputs', 'events', 'previews', 'output', 'checkpoint', 'promptless']);
const workerKinds = new Set(['inbox', 'leases']);

/** What a model's keys of one kind take, which stands in their names; nothing when they were seen in an earlier pass. */
export interface KeySize {
  model: string;
  kind: string;
  keys: number;
  /** Estimated from some of them. */
  bytes: number;
}

/** Sizes are asked of so many keys of a kind; a scan comes in no order, so the first are as good as any. */
const sampleSize = 20;

/** A key by the parts of its name. */
type FoundKey = Record<'key' | 'shard' | 'kind' | 'subject', string>;

/** Goes round and round the store's keys, a page for each call. */
export class LeakSweeper {
  readonly #store: StoreConnection;
  readonly #pageSize: number;
  #cursor = '0';
  #server = 0;
  /** Keys of this pass. */
  readonly #counts = new Map<string, Omit<KeySize, 'bytes'> & { samples: string[] }>();

  constructor(store: StoreConnection, { pageSize = 500 }: { pageSize?: number } = {}) {
    this.#store = store;
    this.#pageSize = pageSize;
  }

  /**
   * One page of one server, of about `pageSize` keys whatever the size of the store. `repaired`: keys that had no TTL although their
   * request has one or is gone, and have one now; `deleted`: keys of workers that are no more; `sizes`: with the last page of a pass,
   * what the keys take. Two round trips, and one more at the end of a pass.
   */
  async sweepPage() {
    const servers = this.#store.masters();
    const server = servers[this.#server % servers.length]!;
    const pattern = `${escapeGlob(this.#store.prefix)}:v2:*`;
    const [cursor, page] = await server.scan(this.#cursor, 'MATCH', pattern, 'COUNT', this.#pageSize);
    this.#cursor = cursor;
    const found = page.map((key) => this.#describe(key)).filter((key) => key !== undefined);
    const mended = await Promise.all(found.map((each) => this.#mend(each)));
    const mendedBy = (how: string): string[] =>
      found.filter((_each, index) => mended[index] === how).map(({ key }) => key);
    const [repaired, deleted] = [mendedBy('repaired'), mendedBy('deleted')];
    if (cursor !== '0') return { repaired, deleted, sizes: undefined };
    this.#server = (this.#server + 1) % servers.length;
    return { repaired, deleted, sizes: this.#server === 0 ? await this.#takeSizes() : undefined };
  }

  #describe(key: string): FoundKey | undefined {
    const name = key.slice(`${this.#store.prefix}:v2:`.length);
    const {
      shard,
      kind,
      subject = '',
    } = /^\{(?<shard>[^}]+)\}:(?<kind>[^:]+):?(?<subject>[^:]*)/.exec(name)?.groups ?? {};
    if (shard === undefined || kind === undefined) return undefined;
    const model = modelOfShard(shard);
    const count = this.#counts.get(`${model} ${kind}`) ?? { model, kind, keys: 0, samples: [] };
    this.#counts.set(`${model} ${kind}`, count);
    if (count.keys++ < sampleSize) count.samples.push(key);
    return { key, shard, kind, subject };
  }

  async #mend({ key, shard, kind, subject }: FoundKey): Promise<string> {
    const of = workerKinds.has(kind) ? 'worker' : 'request';
    if (of === 'request' && !requestKinds.has(kind)) return '';
    const keys = this.#store.keysOf(shard);
    const values = [of, subject, key.slice(keys.base.length + 1), this.#store.resultTtlMs];
    return (await runScript(this.#store, 'upkeep/sweep-key', keys, values)) as string;
  }

  async #takeSizes(): Promise<KeySize[]> {
    return Promise.all(
      [...this.#counts.values()].map(async (count) => {
        const { model, kind, keys, samples } = count;
        Object.assign(count, { keys: 0, samples: [] });
        const replies = await Promise.all(samples.map((key) => this.#store.redis.memory('USAGE', key)));
        // One that has gone since is no sample.
        const sizes = replies.filter((bytes) => bytes !== null);
        const mean = sizes.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, sizes.length);
        return { model, kind, keys, bytes: Math.round(mean * keys) };
      }),
    );
  }
}

/** A text as a pattern that matches it alone. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}
