import type { Pipeline } from '@darkroom/core';
import type { PictureCard } from '@darkroom/kinds';
import { type Conditioning, DenoiserBatch, type DenoiserInputs } from '../graphs/denoiser-batch.ts';
import type { ModelGraphs } from '../graphs/model-graphs.ts';
import type { ReadText } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs } from '../graphs/try-picture-graphs.ts';
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { decodePicture } from './decode-picture.ts';
import { denoise } from './denoise.ts';
import { checkPictureRequest, type PictureRequest } from './picture-request.ts';
import { checkpointPictureRow, createPictureRows } from './picture-row.ts';
import type { PictureRow, PictureRowRequest, PictureSchedule } from './picture-row.ts';

/** A loaded model that makes pictures. */
export interface PicturePipeline extends Pipeline<PictureRow> {
  readonly card: PictureCard;
  createRows(request: PictureRowRequest): Promise<PictureRow[]>;
}

/** What tells one family of models from the others, its text encoders loaded. */
export interface LoadPicturePipelineOptions {
  model: ModelDirectory;
  graphs: ModelGraphs;
  inputs: DenoiserInputs;
  /** Of any text, to try the denoiser with. */
  trial: Conditioning;
  readText: (text: string, request: PictureRequest) => Promise<ReadText>;
  /**
   * For the half of guidance that is computed without the prompt. By default the negative prompt is read as the prompt
   * is; null if there is no such half, because the denoiser itself is told the guidance.
   */
  readNegative?: ((request: PictureRequest, conditional: Conditioning) => Promise<ReadText>) | null;
  /** What the schedule takes from the picture; nothing by default. */
  scheduleOf?: (request: PictureRequest) => PictureSchedule;
  /** The model's by default. */
  latents?: LatentFacts;
}

/**
 * Loads the denoiser and the decoder, calls each of them once, and makes the pipeline: what is the same for all families.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadPicturePipeline(options: LoadPicturePipelineOptions): Promise<PicturePipeline> {
  const { model, graphs, inputs, trial, readText, scheduleOf, latents: facts = model.latents } = options;
  const { readNegative = (request: PictureRequest) => readText(request.negativePrompt, request) } = options;
  const { card, preview: projection } = model;
  const denoiser = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const batch = new DenoiserBatch(denoiser, inputs);
  await tryPictureGraphs({ model, denoiser, batch, vaeDecoder, conditioning: trial });

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const conditional = await readText(request.prompt, request);
      const isGuided = readNegative !== null && request.guidanceScale > 1;
      const unconditional = isGuided ? await readNegative(request, conditional.conditioning) : undefined;
      const schedule = scheduleOf?.(request) ?? {};
      return createPictureRows({ model, rowRequest, request, conditional, unconditional, schedule });
    },

    step: (rows) => denoise(rows, { batch, projection }),
    finish: (row) => decodePicture(row, { vaeDecoder, facts }),
    checkpoint: checkpointPictureRow,

    // All that a row has is memory of JavaScript's.
    release() {},
    settle: () => graphs.settle(),
    dispose: () => graphs.dispose(),
  };
}
