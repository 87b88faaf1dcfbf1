export type { EngineProcessOptions } from './engine-message.ts';
export * from './engine.ts';
export type * from './executor-event.ts';
export type * from './executor.ts';
export * from './in-process-executor.ts';
export * from './process-executor.ts';
