import type { WorkerThroughput } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';

/** Identity of a worker. The id may be reused after a restart; the incarnation differs. A move replaces the object. */
export interface WorkerIdentity {
  /** Shard of the model that the worker is in. */
  readonly shard: string;
  readonly workerId: string;
  readonly incarnation: string;
}

/** A worker by its id, in its shard. */
export type WorkerName = Pick<WorkerIdentity, 'shard' | 'workerId'>;

/**
 * Registers a worker, or changes its state: `ready` and `asleep` workers take leases, `loading` ones take none but keep
 * those they have. `capacity`: in slots; `info`: shown to operators (device, host, pid, version); `loadMs`: duration of
 * the last load, for estimates. Returns `leased` if it has leases: such a worker cannot become `asleep`, and nothing is
 * changed.
 */
export async function registerWorker(
  store: StoreConnection,
  { shard, workerId, incarnation }: WorkerIdentity,
  options: {
    state: 'loading' | 'ready' | 'asleep';
    capacity: number;
    info: Readonly<Record<string, string | number>>;
    loadMs?: number | undefined;
  },
): Promise<'registered' | 'leased'> {
  const { state, capacity, info, loadMs = '' } = options;
  const values = [workerId, incarnation, state, capacity, JSON.stringify(info), loadMs];
  const reply = await runScript(store, 'workers/register-worker', store.keysOf(shard), values);
  return reply as 'registered' | 'leased';
}

/**
 * Renews the leases of a worker by a heartbeat, and reports its throughput. `lastRead`: the last inbox entry it has
 * read, see `WorkerInbox`; entries up to it are deleted, as they hold prompts. Returns `reaped` if the worker was
 * reaped: its requests were requeued, and it must register again.
 */
export async function heartbeatWorker(
  store: StoreConnection,
  { shard, workerId, incarnation }: WorkerIdentity,
  { pace, lastRead = '' }: { pace?: WorkerThroughput | undefined; lastRead?: string } = {},
): Promise<'alive' | 'reaped'> {
  const values = [workerId, incarnation, pace === undefined ? '' : encodeThroughput(pace), idAfter(lastRead)];
  const reply = await runScript(store, 'workers/heartbeat-worker', store.keysOf(shard), values);
  return reply as 'alive' | 'reaped';
}

/** Returns all leases of a worker. One round trip. */
export async function listLeases(store: StoreConnection, { shard, workerId }: WorkerIdentity): Promise<Delivery[]> {
  const leases = await store.redis.hkeys(store.keysOf(shard).leases(workerId));
  return leases.map((lease) => {
    const [id = '', token = ''] = lease.split(' ');
    return { id, token };
  });
}

/** Returns the lowest possible stream id after this entry. */
function idAfter(entry: string): string {
  const [ms, number = 0] = entry.split('-');
  return entry === '' ? '' : `${ms}-${Number(number) + 1}`;
}

/** Lower bound of a cost's duration, in ms, as rates are its inverse. */
const minMs = 1e-9;

/** Encodes the throughput with what it adds to the sums over all workers (changeThroughput in worker-pool.lua). */
function encodeThroughput(pace: WorkerThroughput): string {
  const { costMs, stepMs, share, remainingCost } = pace;
  const sums = {
    remainingCost,
    fastRate: 1 / Math.max(minMs, costMs.fast),
    slowRate: 1 / Math.max(minMs, costMs.slow),
    fastStepMs: stepMs.fast,
    slowStepMs: stepMs.slow,
    // The unused fraction of the max length; 0 if the worker does not report it.
    fastSpared: 1 - (share?.fast ?? 1),
    slowSpared: 1 - (share?.slow ?? 1),
  };
  // A sum that is NaN once stays NaN.
  return Object.values(sums).every(Number.isFinite) ? JSON.stringify({ ...pace, sums }) : '';
}
