/** Stale writer: collects lease tokens, and writes with each after the request got another token. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Delivery, type RequestWrite, writeBatch } from '@darkroom/store';
import type { History } from '../history.ts';
import type { ChaosSystem } from '../system/system.ts';

const everyMs = 250;
const maxCollected = 200;
/** Step number that no real request reaches; a client that reads it has read a stale write. */
export const forgedStep = 1_000_000;

const progress = { index: 0, done: forgedStep, total: forgedStep };
const error = { code: 'internal', message: 'forged' };

/** One write of each type that a worker may send. */
const forgeries: readonly ((delivery: Delivery) => RequestWrite)[] = [
  (delivery) => ({ type: 'progress', delivery, progress, of: progress }),
  (delivery) => ({ type: 'end', delivery, end: { state: 'failed', error } }),
  (delivery) => ({ type: 'give-back', delivery, reason: 'engine_failed' }),
  (delivery) => ({ type: 'checkpoint', delivery, index: 0, done: forgedStep, data: Buffer.from('forged') }),
  (delivery) => ({ type: 'delta', delivery, index: 0, offset: 0, text: 'forged' }),
  (delivery) => ({ type: 'release', delivery, slots: 8 }),
  (delivery) => {
    const info = { index: 0, contentType: 'image/png', bytes: 6, chunks: 1 };
    return { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('forged') };
  },
];

export async function forge({ store }: ChaosSystem, history: History, over: AbortSignal): Promise<void> {
  /** Collected tokens, by lease (`<id> <token>`). */
  const collected = new Map<string, { id: string; token: string; model: string }>();
  let batch = 0;
  while (!over.aborted) {
    await delay(everyMs);
    try {
      for (const model of await store.redis.hkeys(`${store.prefix}:models`)) {
        const keys = store.keysOf(model);
        for (const list of ['busy', 'draining'] as const)
          for (const workerId of await store.redis.zrange(keys.workers(list), '0', '-1'))
            for (const lease of await store.redis.hkeys(keys.leases(workerId))) {
              const [id = '', token = ''] = lease.split(' ');
              if (collected.size < maxCollected) collected.set(lease, { id, token, model });
            }
      }
      for (const [lease, { id, token, model }] of collected) {
        const now = await store.redis.hget(store.keysOf(model).request(id), 'token');
        if (now === token) continue;
        collected.delete(lease);
        const forged = forgeries[batch % forgeries.length]!({ id, token });
        const worker = { shard: model, workerId: 'forger', incarnation: 'none' };
        const [outcome = 'none'] = await writeBatch(store, worker, [forged], { batch: ++batch });
        history.add({ what: 'stale-write', request: id, outcome });
      }
    } catch {
      // Redis is unavailable. Collected tokens stay stale.
    }
  }
}
