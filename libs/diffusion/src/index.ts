export type { LoadPipelineOptions } from './graphs/model-graphs.ts';
export * from './pipelines/load-pipeline.ts';
export type { ImagePipeline, ImageRow } from './image/image-row.ts';
