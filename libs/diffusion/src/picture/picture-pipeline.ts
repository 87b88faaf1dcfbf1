import type { Pipeline, RowOutput } from '@darkroom/core';
import type { PictureCard } from '@darkroom/kinds';
import { type Conditioning, DenoiserBatch, type DenoiserInputs } from '../graphs/denoiser-batch.ts';
import type { ModelGraphs } from '../graphs/model-graphs.ts';
import {
  type EncodedPrompt,
  type EncoderOutputs,
  loadPromptEncoder,
  type PromptEncoder,
} from '../graphs/prompt-encoder.ts';
import { smallestSide, tryPictureGraphs } from '../graphs/try-picture-graphs.ts';
import { LoraLibrary } from '../loras/lora-library.ts';
import type { LoraSet } from '../loras/lora-set.ts';
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import { inpaintingChannels, type ModelDirectory } from '../model/model-directory.ts';
import { decodePicture } from './decode-picture.ts';
import { denoise } from './denoise.ts';
import { checkPictureRequest, type PictureRequest } from './picture-request.ts';
import { checkpointPictureRow, createPictureRows, type ReadText } from './picture-row.ts';
import { readPictureSource } from './picture-source.ts';
import type { PictureRow, PictureRowRequest, PictureSchedule } from './picture-row.ts';
import { upscaledOutput, upscaleRows } from './upscale-rows.ts';

/** A loaded model that makes pictures. */
export interface PicturePipeline extends Pipeline<PictureRow> {
  readonly card: PictureCard;
  createRows(request: PictureRowRequest): Promise<PictureRow[]>;
}

/** What tells one family of models from the others. */
export interface PictureFamily {
  encoders: readonly EncoderOutputs[];
  inputs: DenoiserInputs;
  /** What the denoiser is told, of all that the encoders gave. */
  conditioningOf: (
    outputs: readonly Float32Array[],
    request: Pick<PictureRequest, 'width' | 'height' | 'guidanceScale'>,
  ) => Conditioning;
  /** The denoiser itself is told the guidance: no half is computed without the prompt. */
  isToldGuidance?: boolean;
  /** Inputs that are zeros where there is no negative prompt. By default it is read as the prompt is, even if it is empty. */
  zeroesEmptyNegative?: readonly string[];
  /** What the schedule takes from the picture; nothing by default. */
  scheduleOf?: (request: PictureRequest) => PictureSchedule;
  /** What of the schedule is left for a picture that is drawn over, 0 … 1 of it; `skipSteps` by default. */
  shorten?: (request: PictureRequest, strength: number) => PictureSchedule;
  /** The model's by default. */
  latents?: LatentFacts;
}

/**
 * Begins where `strength` says, of all steps: whole steps are left, at least one.
 * Source: diffusers `get_timesteps` of `StableDiffusionImg2ImgPipeline` and its kin, which refuse where none would be left.
 */
function skipSteps({ numInferenceSteps }: PictureRequest, strength: number): PictureSchedule {
  return { skippedSteps: numInferenceSteps - Math.max(Math.floor(numInferenceSteps * strength), 1) };
}

/**
 * Loads a model's graphs, calls each of them once, and makes the pipeline: what is the same for all families.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadPicturePipeline(
  model: ModelDirectory,
  { family, graphs }: { family: PictureFamily; graphs: ModelGraphs },
): Promise<PicturePipeline> {
  const { scheduleOf, shorten = skipSteps, latents: facts = model.latents } = family;
  const isForInpainting = model.denoiser.inChannels === inpaintingChannels(model.latents);
  const { card } = model;
  const { encoders, batch, vaeDecoder, safetyChecker, upscalers, encoder } = await loadParts(model, { family, graphs });
  const readLoras = lorasReader(model, { graphs, batch });
  // Previews would show what the checker is there to hide.
  const projection = safetyChecker === undefined ? model.preview : undefined;

  /** Decoded, and checked. */
  async function develop(row: PictureRow): Promise<RowOutput> {
    const output = await decodePicture(row, { vaeDecoder, facts });
    return safetyChecker === undefined ? output : safetyChecker.check(output, row.index);
  }

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const { strength } = request;
      const texts = await readTexts(request, { family, encoders });
      const loras = request.loras && (await readLoras(request.loras));
      const { attachments } = rowRequest;
      const source = await readPictureSource({ request, attachments, encoder, latents: facts, isForInpainting });
      const schedule = { ...scheduleOf?.(request), ...(strength !== undefined && shorten(request, strength)) };
      return createPictureRows({ model, rowRequest, request, ...texts, source, loras, schedule });
    },

    // Rows of one shape are all denoised, or none is.
    step: (rows) =>
      isDenoised(rows[0]!) ? upscaleRows(rows, { upscalers, develop }) : denoise(rows, { batch, projection }),
    finish: async (row) => (row.upscaling === undefined ? develop(row) : upscaledOutput(row)),
    checkpoint: checkpointPictureRow,

    // All that a row has is memory of JavaScript's.
    release() {},
    settle: () => graphs.settle(),
    dispose: () => graphs.dispose(),
  };
}

/** In this order: who is tried may need those before. `encoder`: of pictures. */
async function loadParts(model: ModelDirectory, { family, graphs }: { family: PictureFamily; graphs: ModelGraphs }) {
  const { card, denoiser: facts, latents } = model;
  const loaded: Awaited<ReturnType<typeof loadPromptEncoder>>[] = [];
  for (const [at, outputs] of family.encoders.entries()) {
    loaded.push(await loadPromptEncoder({ model, graphs, at, ...outputs }));
  }
  const denoiser = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const safetyChecker = await graphs.loadSafetyChecker();
  const upscalers = await graphs.loadUpscalers();
  const batch = new DenoiserBatch(denoiser, { ...family.inputs, extraChannels: facts.inChannels - latents.channels });
  const trialOutputs = loaded.flatMap(({ trial }) => trial);
  const conditioning = family.conditioningOf(trialOutputs, { ...card.sizes.default, guidanceScale: 1 });
  await tryPictureGraphs({ model, denoiser, batch, vaeDecoder, conditioning });
  const encoder = await graphs.loadVaeEncoder(smallestSide(card));
  return { encoders: loaded.map((each) => each.encoder), batch, vaeDecoder, safetyChecker, upscalers, encoder };
}

function isDenoised({ scheduler }: PictureRow): boolean {
  return scheduler.stepIndex === scheduler.timesteps.length;
}

/** Reads the adapters of requests. The graph that takes them is loaded for the first. */
function lorasReader(
  model: ModelDirectory,
  { graphs, batch }: { graphs: ModelGraphs; batch: DenoiserBatch },
): (chosen: NonNullable<PictureRequest['loras']>) => Promise<LoraSet> {
  const library = new LoraLibrary(model.loras);
  let hasGraph = false;
  return async (chosen) => {
    const set = library.setOf(chosen);
    if (!hasGraph) batch.addLoras(await graphs.loadDenoiserWithLoras(), model.loras.layers);
    hasGraph = true;
    return set;
  };
}

/** The prompt and, with guidance, the negative prompt. */
async function readTexts(
  request: PictureRequest,
  { family, encoders }: { family: PictureFamily; encoders: readonly PromptEncoder[] },
): Promise<{ conditional: ReadText; unconditional: ReadText | undefined }> {
  const { conditioningOf, isToldGuidance = false, zeroesEmptyNegative } = family;

  async function readText(text: string): Promise<ReadText> {
    const encoded: EncodedPrompt[] = [];
    for (const encoder of encoders) encoded.push(await encoder.encode(text));
    const conditioning = conditioningOf(
      encoded.flatMap(({ outputs }) => outputs),
      request,
    );
    // Each encoder has its own tokens, and the one that reads the furthest says what of a text is lost.
    return { conditioning, cutTokens: Math.min(...encoded.map(({ cutTokens }) => cutTokens)) };
  }

  const conditional = await readText(request.prompt);
  if (isToldGuidance || request.guidanceScale <= 1) return { conditional, unconditional: undefined };
  if (zeroesEmptyNegative === undefined || request.negativePrompt !== '')
    return { conditional, unconditional: await readText(request.negativePrompt) };
  const like = conditional.conditioning;
  const zeros = zeroesEmptyNegative.map((input) => [input, new Float32Array(like[input]!.length)]);
  return { conditional, unconditional: { conditioning: { ...like, ...Object.fromEntries(zeros) }, cutTokens: 0 } };
}
