import type { Metrics } from '@darkroom/service';
import type { StoreConnection } from '@darkroom/store';
import type { EngineLifeOptions } from '../engine/engine-life.ts';
import type { WorkerEngine } from '../engine/worker-engine.ts';
import type { EncodingKinds } from '../request/output-encoder.ts';

export interface WorkerOptions
  extends
    Omit<WorkerEngine, 'device'>,
    Pick<EngineLifeOptions, 'loads' | 'sleepAfterMs' | 'retryMs' | 'stopSignal' | 'log'> {
  store: StoreConnection;
  workerId: string;
  /** Encode the outputs of requests. */
  kinds: EncodingKinds;
  heartbeatMs: number;
  /** Silence after which an engine with requests counts as hung, ms; longer if its requests should take longer. */
  engineTimeoutMs: number;
  /** Shown to operators: device, host, process id, version. */
  info: Readonly<Record<string, string | number>>;
  metrics: Metrics;
  /** Replaces this worker by a fresh one, which loads the current files. */
  restart: () => void;
}
