/**
 * Sweeps keys of requests and workers that are gone. No script leaves any; manual changes or a partly restored backup
 * may.
 */
import { modelOfShard, itemAt } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Kinds of keys that are deleted with their request, and with their worker; names as in keys.ts. */
const requestKinds = new Set(['input', 'inputs', 'events', 'previews', 'output', 'checkpoint', 'promptless']);
const workerKinds = new Set(['inbox', 'leases']);

/** Memory used by one kind of keys of a model; kinds that were only seen in an earlier pass have 0 keys. */
export interface KeySize {
  model: string;
  kind: string;
  keys: number;
  /** Estimated from a sample. */
  bytes: number;
}

/** Keys of a kind whose size is read. SCAN returns keys in no order, so the first ones are a fair sample. */
const sampleSize = 20;

/** The parts of a key's name. */
type FoundKey = Record<'key' | 'shard' | 'kind' | 'subject', string>;

/** Cycles through the keys of the store, one page per call. */
export class LeakSweeper {
  readonly #store: StoreConnection;
  readonly #pageSize: number;
  #cursor = '0';
  #server = 0;
  /** Keys seen in this pass, by model and kind. */
  readonly #counts = new Map<string, Omit<KeySize, 'bytes'> & { samples: string[] }>();

  constructor(store: StoreConnection, { pageSize = 500 }: { pageSize?: number } = {}) {
    this.#store = store;
    this.#pageSize = pageSize;
  }

  /**
   * Sweeps one page of about `pageSize` keys of one server. `repaired`: keys that got a TTL, as their request has one
   * or is gone; `deleted`: keys of workers that are gone; `sizes`: memory used by kind, with the last page of a pass.
   * Two round trips, and one more at the end of a pass.
   */
  async sweepPage() {
    const servers = this.#store.masters();
    const server = itemAt(servers, this.#server % servers.length);
    const pattern = `${escapeGlob(this.#store.prefix)}:v3:*`;
    const [cursor, page] = await server.scan(this.#cursor, 'MATCH', pattern, 'COUNT', this.#pageSize);
    this.#cursor = cursor;
    const found = page.map((key) => this.#describe(key)).filter((key) => key !== undefined);
    const outcomes = await Promise.all(found.map((each) => this.#repair(each)));
    const keysWith = (outcome: string): string[] =>
      found.filter((_each, index) => outcomes[index] === outcome).map(({ key }) => key);
    const [repaired, deleted] = [keysWith('repaired'), keysWith('deleted')];
    if (cursor !== '0') return { repaired, deleted, sizes: undefined };
    this.#server = (this.#server + 1) % servers.length;
    return { repaired, deleted, sizes: this.#server === 0 ? await this.#takeSizes() : undefined };
  }

  #describe(key: string): FoundKey | undefined {
    const name = key.slice(`${this.#store.prefix}:v3:`.length);
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

  async #repair({ key, shard, kind, subject }: FoundKey): Promise<string> {
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
        // Keys that are gone by now are not part of the sample.
        const sizes = replies.filter((bytes) => bytes !== null);
        const mean = sizes.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, sizes.length);
        return { model, kind, keys, bytes: Math.round(mean * keys) };
      }),
    );
  }
}

/** Escapes a text so that, as a glob pattern, it matches only itself. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}
