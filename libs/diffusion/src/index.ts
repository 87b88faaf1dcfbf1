export type { LoadPipelineOptions } from './graphs/model-graphs.ts';
export * from './pipelines/load-pipeline.ts';
export type { PicturePipeline } from './picture/picture-pipeline.ts';
export type { PictureRow } from './picture/picture-row.ts';
