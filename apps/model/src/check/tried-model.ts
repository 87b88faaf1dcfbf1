import type { LoadImageModelOptions } from '@darkroom/diffusion';
import type { LoadTextPipelineOptions } from '@darkroom/language';

/** Load options for a model of any kind, as a worker with the same settings has them. */
export type TriedModel = LoadImageModelOptions & LoadTextPipelineOptions;
