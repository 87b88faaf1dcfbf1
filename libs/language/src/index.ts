export * from './model/text-model-directory.ts';
export * from './pipelines/load-text-pipeline.ts';
export type { TextPipeline } from './pipelines/text-pipeline.ts';
