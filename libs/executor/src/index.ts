export type { EngineProcessOptions } from './process/engine-message.ts';
export * from './engine/engine.ts';
export type { LoadModelOptions } from './engine/load-model.ts';
export * from './executor-event.ts';
export type * from './executor.ts';
export * from './process/process-executor.ts';
