/**
 * Stable Diffusion 1.x and 2.x: a CLIP text encoder, a UNet with classifier-free guidance, and a VAE. Each row has its
 * own prompt, steps, guidance, scheduler and seed; rows of one size share the UNet call of a step. The other families
 * are subclasses, which override what differs.
 * Source: diffusers `StableDiffusionPipeline.__call__`, `StableDiffusionImg2ImgPipeline` and
 * `StableDiffusionInpaintPipeline`, with a CPU generator and one seed per image.
 *
 * Known limits: no clip skip.
 */
import { DarkroomError, itemAt, mapNonEmpty, type NonEmpty, valueOfKey } from '@darkroom/core';
import type { PipelineComponent, RowCheckpoint, RowEvent } from '@darkroom/core';
import type { RowOutput, StepReport } from '@darkroom/core';
import { type ImageCard, seedOfImage } from '@darkroom/kinds';
import type { Conditioning, DenoiserInputs, DenoiserRow } from '../graphs/denoiser-batch.ts';
import type { ModelGraphs } from '../graphs/model-graphs.ts';
import { type EncoderOutputs, lastHiddenState } from '../graphs/prompt-encoder.ts';
import { maxPromptChunks } from '../graphs/weighted-prompt.ts';
import { guide } from '../image/guide.ts';
import { type ImageParts, loadImageParts } from '../image/image-parts.ts';
import { checkImageRequest, type ImageRowInput } from '../image/image-request.ts';
import { type EncodedText, type ImagePipeline, ImageRow, type ImageRowRequest } from '../image/image-row.ts';
import { readImageSource } from '../image/image-source.ts';
import { interleaveSample, projectLatents } from '../image/latents-to-rgb.ts';
import { restorePreserved, startLatents } from '../image/start-latents.ts';
import type { RequestLoras } from '../loras/lora-library.ts';
import { inpaintingChannels, type ModelDirectory } from '../model/model-directory.ts';
import { TorchGenerator } from '../random/torch-generator.ts';
import { createScheduler } from '../schedulers/create-scheduler.ts';
import type { CreateSchedulerOptions, Scheduler } from '../schedulers/scheduler.ts';

/** Scheduler options besides the model's config and the number of steps. */
export type ImageSchedule = Omit<CreateSchedulerOptions, 'config' | 'numInferenceSteps'>;

/** The fields of a request that the denoiser may take as inputs. */
export type ConditioningRequest = Pick<ImageRowInput, 'width' | 'height' | 'guidanceScale'>;

export class StableDiffusionPipeline implements ImagePipeline {
  readonly card: ImageCard;
  components: readonly PipelineComponent[] = [];
  protected readonly model: ModelDirectory;
  readonly #graphs: ModelGraphs;
  #parts!: ImageParts;

  /** Creates a pipeline, to be loaded before its first use. */
  constructor(model: ModelDirectory, graphs: ModelGraphs) {
    this.card = model.card;
    this.model = model;
    this.#graphs = graphs;
  }

  // What families override: the inputs of the denoiser, and the schedule.

  /** The outputs to read from each text encoder: here the last layer. */
  protected get encoderOutputs(): readonly EncoderOutputs[] {
    return [{ outputs: ({ session }) => [lastHiddenState(session)], outputDims: () => [[1, ...this.#embeddingShape]] }];
  }

  protected get denoiserInputs(): DenoiserInputs {
    return { conditioning: { encoder_hidden_states: ['open', this.model.denoiser.embeddingWidth] } };
  }

  get #embeddingShape(): readonly [number, number] {
    return [this.model.textEncoders[0].tokenizer.maxTokens, this.model.denoiser.embeddingWidth];
  }

  /** Builds the denoiser's inputs from the outputs of all text encoders. */
  protected conditioningOf(embeddings: readonly Float32Array[], _request: ConditioningRequest): Conditioning {
    return { encoder_hidden_states: itemAt(embeddings, 0) };
  }

  /** True if a row needs the denoiser's output for the negative prompt, too. */
  protected needsNegativePrompt({ guidanceScale }: ImageRowInput): boolean {
    return guidanceScale > 1;
  }

  /** Encodes the negative prompt. */
  protected encodeNegativePrompt(request: ImageRowInput, _prompt: EncodedText, loras?: RequestLoras) {
    return this.encodePrompt(request.negativePrompt, request, loras);
  }

  /**
   * Returns the schedule. With an input image, the share `strength` of all steps runs, rounded down to whole steps, at
   * least one.
   * Source: diffusers `get_timesteps` of `StableDiffusionImg2ImgPipeline` and the like, which fail if no step is left.
   */
  protected scheduleOf({ numInferenceSteps: steps, strength }: ImageRowInput): ImageSchedule {
    return strength === undefined ? {} : { skippedSteps: steps - Math.max(Math.floor(steps * strength), 1) };
  }

  // The pipeline, from loading a model to the finished image.

  /** Loads the graphs. @throws DarkroomError naming the file that cannot be loaded or does not fit the others. */
  async load(): Promise<this> {
    const { encoderOutputs, denoiserInputs } = this;
    const trial = { ...this.card.sizes.default, guidanceScale: 1 };
    const conditioningOf = (outputs: readonly Float32Array[]): Conditioning => this.conditioningOf(outputs, trial);
    this.#parts = await loadImageParts(this.model, this.#graphs, { encoderOutputs, denoiserInputs, conditioningOf });
    this.components = await this.#graphs.describe();
    return this;
  }

  /**
   * Creates a row for each requested image, from noise, from an input image or from its checkpoint.
   *
   * @throws DarkroomError `invalid_request` naming the field, other errors if an encoder fails.
   */
  async createRows(rowRequest: ImageRowRequest): Promise<ImageRow[]> {
    const { card, model } = this;
    const { latents } = model;
    const request = checkImageRequest(rowRequest.input, card);
    const loras = request.loras && (await this.#parts.readLoras(request.loras));

    // Encode the prompts. Without guidance, the negative one has no effect.
    const prompt = await this.encodePrompt(request.prompt, request, loras);
    const negativePrompt = this.needsNegativePrompt(request)
      ? await this.encodeNegativePrompt(request, prompt, loras)
      : undefined;

    // Encode the input image and the mask, if there are any.
    const isForInpainting = model.denoiser.inChannels === inpaintingChannels(latents);
    const { attachments } = rowRequest;
    const encoder = this.#parts.vaeEncoder;
    const source = await readImageSource({ request, attachments, encoder, latents, isForInpainting });

    const schedule = this.scheduleOf(request);
    const latentDims = [latents.channels, request.height / latents.factor, request.width / latents.factor] as const;
    const indexes = rowRequest.indexes ?? Array.from({ length: request.n }, (_, index) => index);
    return indexes.map((index) => {
      const scheduler = createRowScheduler(request, { config: model.scheduler.config, ...schedule });
      const seed = seedOfImage(request.seed, index);
      const generator = new TorchGenerator({ seed });
      const { strength = 1 } = request;
      const givenNoise = rowRequest.initialNoise?.get(index);
      const start = startLatents({ source, strength, scheduler, generator, latents, latentDims, givenNoise });
      const latentsAndPrompts = { latentDims, start, prompt, negativePrompt, loras: loras?.denoiser };
      const row = new ImageRow({ index, request, seed, scheduler, generator, ...latentsAndPrompts });
      const checkpoint = rowRequest.checkpoints?.get(index);
      if (checkpoint !== undefined) row.resume(checkpoint);
      return row;
    });
  }

  /** Encodes a text with all encoders. */
  protected async encodePrompt(text: string, request: ImageRowInput, loras?: RequestLoras): Promise<EncodedText> {
    const outputs: Float32Array[] = [];
    // Each encoder has its own limit. A token is lost only if no encoder reads it.
    let cutTokens = Infinity;
    const chunks = request.promptSyntax === 'webui' ? this.#chunksOf(text) : undefined;
    for (const [at, encoder] of this.#parts.encoders.entries()) {
      const encoded = await encoder.encode(text, { chunks, loras: loras?.encoders[at] });
      outputs.push(...encoded.outputs);
      cutTokens = Math.min(cutTokens, encoded.cutTokens);
    }
    return { conditioning: this.conditioningOf(outputs, request), cutTokens };
  }

  /** Returns the number of chunks of a weighted prompt: one for all encoders, whose outputs are joined per token. */
  #chunksOf(text: string): number {
    const { encoders, denoiser } = this.#parts;
    const counts = encoders.map((encoder) => encoder.countChunks(text));
    return Math.min(Math.max(...counts), denoiser.takesAnyLength ? maxPromptChunks : 1);
  }

  /**
   * Advances every row by one denoising step, or rows that are denoised by one tile of their upscaling. Rows of one
   * shape are in the same phase.
   *
   * @throws DarkroomError if a call of the denoiser fails; then no row has advanced.
   */
  async step(rows: NonEmpty<ImageRow>): Promise<StepReport<ImageRow>> {
    const events = new Map<ImageRow, RowEvent[]>();
    const failures = new Map<ImageRow, DarkroomError>();
    if (rows.every(({ isDenoised }) => isDenoised)) {
      for (const row of rows) {
        const error = await this.#upscaleTile(row);
        if (error === undefined) events.set(row, [{ type: 'progress', done: row.step, total: row.totalSteps }]);
        else failures.set(row, error);
      }
      return { modelRows: rows.length, events, failures };
    }
    // Predict the noise, without and with the prompt. Make all calls first: if one fails, no row has advanced.
    const halves = new Map(rows.map((row) => [row, denoiserRowsOf(row)]));
    const outputs = await this.#parts.denoiser.run([...halves.values()].flat(), rows[0].latentDims);
    for (const [row, ofRow] of halves) {
      // Classifier-free guidance, then the scheduler's step.
      const [first, second] = mapNonEmpty(ofRow, (half) => valueOfKey(outputs, half));
      const error = takeStep(row, second === undefined ? first : guide(first, second, row.request));
      if (error === undefined) events.set(row, [this.#progressOf(row)]);
      else failures.set(row, error);
    }
    return { modelRows: outputs.size, events, failures };
  }

  /** Returns the progress, with a preview at the interval of the request; never after the last step. */
  #progressOf(row: ImageRow): RowEvent {
    const { step: done, totalSteps: total, isDone, latentDims } = row;
    const { previewEvery } = row.request;
    // Previews would show images that the safety checker hides.
    const projection = this.#parts.safetyChecker === undefined ? this.model.preview : undefined;
    if (projection === undefined || previewEvery === 0 || done % previewEvery !== 0 || isDone)
      return { type: 'progress', done, total };
    const [, height, width] = latentDims;
    const preview = { data: projectLatents(row.predictedOriginal, projection), facts: { width, height } };
    return { type: 'progress', done, total, preview };
  }

  async finish(row: ImageRow): Promise<RowOutput> {
    return row.upscaling?.output ?? this.#decode(row);
  }

  /** Decodes a row's latents to RGB, and runs the safety checker. @throws DarkroomError if either fails. */
  async #decode({ latents, latentDims, request, seed, prompt, negativePrompt, index }: ImageRow): Promise<RowOutput> {
    const { vaeDecoder, safetyChecker } = this.#parts;
    const scaling = Math.fround(this.model.latents.scalingFactor);
    const shift = Math.fround(this.model.latents.shiftFactor);
    const scaled = latents.map((value) => Math.fround(value / scaling) + shift);
    const data = interleaveSample(await vaeDecoder.decode(scaled, latentDims));
    const { width, height } = request;
    const cuts = {
      ...(prompt.cutTokens > 0 && { promptTokensCut: prompt.cutTokens }),
      ...(negativePrompt && negativePrompt.cutTokens > 0 && { negativePromptTokensCut: negativePrompt.cutTokens }),
    };
    const output = { data, facts: { seed, width, height, ...cuts } };
    return safetyChecker === undefined ? output : safetyChecker.check(output, index);
  }

  /** Upscales the next tile of a row. Returns the error that fails this row only. */
  async #upscaleTile(row: ImageRow): Promise<DarkroomError | undefined> {
    try {
      await row.upscaling?.upscaleTile(this.#parts.upscalers, () => this.#decode(row));
      return undefined;
    } catch (error) {
      if (DarkroomError.isInstance(error)) return error;
      return new DarkroomError('engine_failed', 'diffusion.upscale', 'the image could not be upscaled', error);
    }
  }

  checkpoint(row: ImageRow): RowCheckpoint {
    return row.checkpoint();
  }

  /** Does nothing: a row holds only JavaScript memory. */
  release(): void {}

  settle(): Promise<void> {
    return this.#graphs.unloadEncoders();
  }

  dispose(): Promise<void> {
    return this.#graphs.dispose();
  }
}

/** @throws DarkroomError `invalid_request` if the scheduler does not support the number of steps. */
function createRowScheduler(
  { scheduler, numInferenceSteps }: ImageRowInput,
  options: Omit<CreateSchedulerOptions, 'numInferenceSteps'>,
): Scheduler {
  try {
    return createScheduler(scheduler, { numInferenceSteps, ...options });
  } catch (error) {
    const message = `${scheduler} with ${numInferenceSteps} steps: ${(error as Error).message}`;
    throw new DarkroomError('invalid_request', 'diffusion.create-rows', message, error);
  }
}

/** Returns an image's rows in the denoiser's batch: without and with the prompt, or with the prompt only. */
function denoiserRowsOf(row: ImageRow): NonEmpty<DenoiserRow> {
  const { latents, loras, scheduler, prompt, negativePrompt } = row;
  const { alongside } = row.start;
  const writeSample: DenoiserRow['writeSample'] = (target, offset) => {
    scheduler.scaleModelInput(latents, target, offset);
    if (alongside !== undefined) target.set(alongside, offset + latents.length);
  };
  const timestep = itemAt(scheduler.timesteps, scheduler.stepIndex);
  const prompts = negativePrompt === undefined ? ([prompt] as const) : ([negativePrompt, prompt] as const);
  return mapNonEmpty(prompts, ({ conditioning }) => ({ writeSample, timestep, conditioning, loras }));
}

/** Takes the scheduler's step. Returns the error that fails this row only. */
function takeStep(row: ImageRow, modelOutput: Float32Array): DarkroomError | undefined {
  const { scheduler, generator, latents: sample, predictedOriginal } = row;
  try {
    scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise: (target) => generator.fillNormal(target) });
    if (row.start.preserved !== undefined) restorePreserved(row.start.preserved, row);
    if (sample.every((value) => Number.isFinite(value))) return undefined;
    return stepError('the model returned values that are not finite');
  } catch (error) {
    return stepError('the scheduler failed', error);
  }
}

function stepError(reason: string, cause?: unknown): DarkroomError {
  return new DarkroomError('engine_failed', 'diffusion.step', `the image could not be made: ${reason}`, cause);
}
