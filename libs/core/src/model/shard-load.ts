/** Load of one shard of a model, for rebalancing. */
export interface ShardLoad {
  shard: string;
  /** False: accepts no new requests and runs empty. */
  isOpen: boolean;
  /** Queued requests. */
  waiting: number;
  running: number;
  /** Age of the oldest queued request, ms; 0 if none is queued. */
  oldestMs: number;
  /** Idle, busy and sleeping workers. */
  workers: number;
  /** Some of the idle workers, longest idle first. */
  idle: readonly string[];
  /** A busy worker with the most free slots. */
  busy: string | undefined;
}

/**
 * Move of a worker to another shard. `isPatient`: it finishes its requests first; otherwise it moves only if it has
 * none.
 */
export interface WorkerMove {
  workerId: string;
  from: string;
  to: string;
  isPatient: boolean;
}
