/** How a shard of a model is doing, beside the others. */
export interface ShardLoad {
  shard: string;
  /** New requests may come; else it is to run empty. */
  isOpen: boolean;
  /** Requests. */
  waiting: number;
  running: number;
  /** For how long the oldest one waits, ms; 0 if none does. */
  oldestMs: number;
  /** Those that take leases, or would if they had room. */
  workers: number;
  /** Some of them that have nothing to do, the one first that has had nothing for longest. */
  idle: readonly string[];
  /** Of those that have something to do, one with as much room as any. */
  busy: string | undefined;
}

/** A worker goes to another shard. `isPatient`: it ends what it has before; else it goes only if it has nothing. */
export interface WorkerMove {
  workerId: string;
  from: string;
  to: string;
  isPatient: boolean;
}
