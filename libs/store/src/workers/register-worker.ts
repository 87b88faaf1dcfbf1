import type { WorkerPace } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';

/** Who a worker is. The id may be used again by its next life; the incarnation tells the two apart. */
export interface WorkerIdentity {
  /** Or the shard of it that it is in. */
  model: string;
  workerId: string;
  incarnation: string;
}

/**
 * Announces a worker, or says that it has loaded and takes leases from now on, that it is asleep and takes them too, or (`loading`) that
 * it takes none for now and keeps those it has. `capacity`: its room, in slots; `info` is shown to operators: device, host, pid, version.
 * `loadMs`: what loading the model took the last time, for estimates. `leased`: it has leases; one that was to be `asleep` cannot be, and
 * nothing is changed.
 */
export async function registerWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  options: {
    state: 'loading' | 'ready' | 'asleep';
    capacity: number;
    info: Readonly<Record<string, string | number>>;
    loadMs?: number | undefined;
  },
): Promise<'registered' | 'leased'> {
  const { state, capacity, info, loadMs = '' } = options;
  const values = [workerId, incarnation, state, capacity, JSON.stringify(info), store.maxAttempts, loadMs];
  const reply = await runScript(store, 'workers/register-worker', store.keysOf(model), values);
  return reply as 'registered' | 'leased';
}

/**
 * Says that a worker lives, which is all that its leases live by, and how fast it is, once that is known. `lastRead`: the last entry of
 * its inbox that it has, see `WorkerInbox`; it goes too, as prompts are in it. `buried`: it was taken for dead, what it had is others',
 * and it must register again.
 */
export async function heartbeatWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  { pace, lastRead = '' }: { pace?: WorkerPace | undefined; lastRead?: string } = {},
): Promise<'alive' | 'buried'> {
  const values = [workerId, incarnation, pace === undefined ? '' : encodePace(pace), idAfter(lastRead)];
  const reply = await runScript(store, 'workers/heartbeat-worker', store.keysOf(model), values);
  return reply as 'alive' | 'buried';
}

/** All that is leased to a worker. One round trip. */
export async function listLeases(store: StoreConnection, { model, workerId }: WorkerIdentity): Promise<Delivery[]> {
  const leases = await store.redis.hkeys(store.keysOf(model).leases(workerId));
  return leases.map((lease) => {
    const [id = '', token = ''] = lease.split(' ');
    return { id, token };
  });
}

/** The lowest that an inbox entry after this one may have. */
function idAfter(entry: string): string {
  const [ms, number = 0] = entry.split('-');
  return entry === '' ? '' : `${ms}-${Number(number) + 1}`;
}

/** No worker is faster than this, in ms: a rate is its inverse. */
const leastMs = 1e-9;

/** With what it adds to the sums over all workers (`readPool`). */
function encodePace(pace: WorkerPace): string {
  const { costMs, stepMs, share, remainingCost } = pace;
  const sums = {
    remainingCost,
    fastRate: 1 / Math.max(leastMs, costMs.fast),
    slowRate: 1 / Math.max(leastMs, costMs.slow),
    fastStepMs: stepMs.fast,
    slowStepMs: stepMs.slow,
    // What is not done: nothing is known of it where a worker does not say so.
    fastSpared: 1 - (share?.fast ?? 1),
    slowSpared: 1 - (share?.slow ?? 1),
  };
  // A sum that is no number once is none for ever.
  return Object.values(sums).every(Number.isFinite) ? JSON.stringify({ ...pace, sums }) : '';
}
