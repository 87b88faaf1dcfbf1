/** A worker that takes leases. */
export interface OpenWorker {
  id: string;
  /** Its model is in memory, and it runs nothing. */
  isIdle: boolean;
  /** Its model is not in memory: a lease makes it load. If it has shapes, it is loading, or waits for memory. */
  isAsleep: boolean;
  /** Free slots, above 0. */
  free: number;
  capacity: number;
  /** Shapes of the requests it runs. */
  shapes: readonly string[];
}

export interface QueuedRequest {
  id: string;
  /** Requests with the same key may share a step. */
  shapeKey: string;
  slots: number;
  /** Remaining deliveries to a worker, the next one included; the last one runs alone. */
  attemptsLeft: number;
  /** By the clock of Redis, ms since the epoch. */
  waitingSinceMs: number;
}

/** Snapshot that a batch-former decides on: workers with free slots, and the next requests. */
export interface Dispatchable {
  /** By the clock of Redis, ms since the epoch. */
  nowMs: number;
  /** Worker that gets no shared leases, so that it becomes idle for an exclusive request. */
  reservedWorkerId: string | undefined;
  /** Idle workers, longest idle first; then busy ones, most free slots first; then sleeping ones. */
  workers: readonly OpenWorker[];
  /** In dispatch order. */
  requests: readonly QueuedRequest[];
}

/** A planned lease: requests for one worker. */
export interface PlannedLease {
  workerId: string;
  /** The requests get the whole worker, and no further lease on it. */
  isExclusive: boolean;
  requestIds: readonly string[];
}
