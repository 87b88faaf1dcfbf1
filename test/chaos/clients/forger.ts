/** A writer that keeps tokens until they are another delivery's, and then writes with them. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Delivery, type RequestWrite, writeBatch } from '@darkroom/store';
import type { History } from '../history.ts';
import type { ChaosSystem } from '../system/system.ts';

const everyMs = 250;
const mostKept = 200;
/** A step that no request has: whoever reads it has read a forgery. */
export const forgedStep = 1_000_000;

const progress = { index: 0, done: forgedStep, total: forgedStep };
const error = { code: 'internal', message: 'forged' };

/** All that a worker may write. */
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
  /** By request and token. */
  const kept = new Map<string, { id: string; token: string; model: string }>();
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
              if (kept.size < mostKept) kept.set(lease, { id, token, model });
            }
      }
      for (const [lease, { id, token, model }] of kept) {
        const now = await store.redis.hget(store.keysOf(model).request(id), 'token');
        if (now === token) continue;
        kept.delete(lease);
        const forged = forgeries[batch % forgeries.length]!({ id, token });
        const worker = { model, workerId: 'forger', incarnation: 'none' };
        const [outcome = 'none'] = await writeBatch(store, worker, [forged], { batch: ++batch });
        history.add({ what: 'stale-write', request: id, outcome });
      }
    } catch {
      // Redis is away. What is kept stays stale.
    }
  }
}
