/** A worker that takes requests. */
export interface OpenWorker {
  id: string;
  /** It has its model in memory and nothing to do. */
  isIdle: boolean;
  /** It has no model in memory: a lease makes it load that. One with shapes is about to, and may still wait for room. */
  isAsleep: boolean;
  /** Slots that nobody has taken, above 0. */
  free: number;
  capacity: number;
  /** Shapes of the requests it has. */
  shapes: readonly string[];
}

export interface WaitingRequest {
  id: string;
  /** Requests with the same key may share a step. */
  shapeKey: string;
  slots: number;
  /** Deliveries to a worker so far that count. */
  attempts: number;
  /** By the clock of Redis, ms. */
  waitingSinceMs: number;
}

/** What a former decides on: free places of a model, and who is next. */
export interface Dispatchable {
  /** By the clock of Redis. */
  nowMs: number;
  /** The worker that is being emptied for a request that must run alone. */
  reservedWorkerId: string | undefined;
  /** Idle ones first, the one idle longest before the others; then busy ones, the one with most free slots first; then sleeping ones. */
  workers: readonly OpenWorker[];
  /** In the order of dispatch. */
  requests: readonly WaitingRequest[];
}

/** What a worker is to be given. */
export interface PlannedLease {
  workerId: string;
  /** All of an idle worker for these requests, and nobody joins them. */
  isExclusive: boolean;
  requestIds: readonly string[];
}
