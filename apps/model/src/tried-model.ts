import type { LoadModelOptions } from '@darkroom/diffusion';
import type { LoadTextPipelineOptions } from '@darkroom/language';

/** A model of any kind, as a worker with the same settings has it. */
export type TriedModel = LoadModelOptions & LoadTextPipelineOptions;
