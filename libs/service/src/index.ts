export { LoopsByName, type LoopsByNameOptions } from './lifecycle/loops-by-name.ts';
export { PeriodicLoop, type PeriodicLoopOptions } from './lifecycle/periodic-loop.ts';
export {
  type MainContext,
  type RunMainOptions,
  exitCodeOfWrongSettings,
  longestStopMs,
  runMain,
} from './lifecycle/run-main.ts';
export { ServiceGroup } from './lifecycle/service-group.ts';
export { BaseService, type Service } from './lifecycle/service.ts';
export { storeService, type StoreServiceOptions } from './lifecycle/store-service.ts';
export { type CreateLoggerOptions, type Logger, createLogger } from './logging/logger.ts';
export { MetricsServer, type MetricsServerOptions } from './metrics/metrics-server.ts';
export * from './metrics/metrics.ts';
export { createReadiness, type Readiness } from './metrics/readiness.ts';
export type { HistogramSeries, ReadSeries } from './metrics/stored-histogram.ts';
export * from './tracing/tracing.ts';
