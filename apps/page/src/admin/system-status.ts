/** What the page reads of `GET /status` and `GET /admin/dead-requests`. */

export interface WorkerStatus {
  id: string;
  model: string;
  state: 'loading' | 'idle' | 'busy' | 'asleep' | 'draining' | 'silent';
  loaded: boolean;
  draining: boolean;
  stopping: boolean;
  device: string | null;
  host: string | null;
  version: string | null;
  changed_files: string | null;
  rows: number;
  free_rows: number;
  last_heartbeat_at: string;
  step_ms: { fast: number; slow: number } | null;
}

export interface QueueStatus {
  model: string;
  paused: boolean;
  queued: number;
  running: number;
  oldest_age_s: number | null;
  per_minute: { finished: number; failed: number };
  ended: Readonly<Record<'succeeded' | 'failed' | 'canceled' | 'expired', number>>;
  requeued: Readonly<Record<'worker_lost' | 'engine_failed' | 'worker_stopped', number>>;
}

export interface DeadRequest {
  request_id: string;
  owner: string | null;
  failed_at: string;
  attempts: number | null;
  code: string | null;
  reason: string;
  is_retryable: boolean;
}

/** All of it at one time, by the server's clock. */
export interface SystemStatus {
  time: string;
  workers: readonly WorkerStatus[];
  queues: readonly QueueStatus[];
  dead: readonly DeadRequest[];
}
