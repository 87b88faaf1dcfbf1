import { deserialize, serialize } from 'node:v8';
import type { Pipeline, PipelineRow, RowCheckpoint, RowRequest } from '@darkroom/core';
import { type ImageCard, imageShapeKey } from '@darkroom/kinds';
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import { type LoraSet, loraSetKey } from '../loras/lora-set.ts';
import { TorchGenerator, type TorchGeneratorSnapshot } from '../random/torch-generator.ts';
import type { Scheduler, SchedulerSnapshot } from '../schedulers/scheduler.ts';
import type { LatentDims } from '../vae/plane.ts';
import type { ImageRowInput } from './image-request.ts';
import type { StartedLatents } from './start-latents.ts';
import { Upscaling } from './upscaling.ts';

/** A loaded image model. */
export interface ImagePipeline extends Pipeline<ImageRow> {
  readonly card: ImageCard;
  createRows(request: ImageRowRequest): Promise<ImageRow[]>;
}

export interface ImageRowRequest extends RowRequest {
  /**
   * Replaces the seed's initial noise, by output index: channels × height × width values of unit variance. As with
   * diffusers' `latents`, the noise of later steps still comes from the beginning of the seed's sequence.
   */
  readonly initialNoise?: ReadonlyMap<number, Float32Array>;
}

/** An encoded prompt, as input of the denoiser. */
export interface EncodedText {
  readonly conditioning: Conditioning;
  /** Tokens at the prompt's end that no encoder read. */
  readonly cutTokens: number;
}

export interface ImageRowOptions {
  index: number;
  request: ImageRowInput;
  seed: number;
  scheduler: Scheduler;
  generator: TorchGenerator;
  latentDims: LatentDims;
  prompt: EncodedText;
  /** undefined without guidance, when that half is not computed. */
  negativePrompt: EncodedText | undefined;
  start: StartedLatents;
  loras: LoraSet | undefined;
}

/** The contents of a checkpoint, serialized in V8's format: hardly larger than the latents. */
interface ImageState extends SchedulerSnapshot {
  key: string;
  generator: TorchGeneratorSnapshot;
  latents: Float32Array;
}

/** One image in progress. */
export class ImageRow implements PipelineRow {
  readonly index: number;
  readonly request: ImageRowInput;
  readonly slots = 1;
  readonly seed: number;
  readonly scheduler: Scheduler;
  generator: TorchGenerator;
  readonly latentDims: LatentDims;
  readonly latents: Float32Array;
  /** The latest step's estimate of the finished latents. */
  readonly predictedOriginal: Float32Array;
  /** Further inputs and data of an input image. */
  readonly start: StartedLatents;
  readonly prompt: EncodedText;
  /** undefined without guidance, when that half is not computed. */
  readonly negativePrompt: EncodedText | undefined;
  /** Changes by adapters; undefined without adapters. */
  readonly loras: LoraSet | undefined;
  /** undefined if the image is not upscaled. */
  readonly upscaling: Upscaling | undefined;
  /** Steps of denoising and upscaling. */
  readonly totalSteps: number;

  constructor(options: ImageRowOptions) {
    const { request, scheduler, start } = options;
    this.index = options.index;
    this.request = request;
    this.seed = options.seed;
    this.scheduler = scheduler;
    this.generator = options.generator;
    this.latentDims = options.latentDims;
    this.latents = start.latents;
    this.predictedOriginal = new Float32Array(start.latents.length);
    this.start = start;
    this.prompt = options.prompt;
    this.negativePrompt = options.negativePrompt;
    this.loras = options.loras;
    this.upscaling = Upscaling.begin(request);
    this.totalSteps = scheduler.timesteps.length + (this.upscaling?.tiles ?? 0);
  }

  /** True once all denoising steps are taken. */
  get isDenoised(): boolean {
    return this.scheduler.stepIndex === this.scheduler.timesteps.length;
  }

  /** Rows that are upscaled batch with each other only. */
  get shapeKey(): string {
    const suffix = this.isDenoised && this.upscaling ? ` x${this.upscaling.upscale}` : '';
    return `${imageShapeKey(this.request)}${suffix}`;
  }

  /** Steps taken, 0 … totalSteps. */
  get step(): number {
    return this.scheduler.stepIndex + (this.upscaling?.done ?? 0);
  }

  get stepsLeft(): number {
    return this.totalSteps - this.step;
  }

  get isDone(): boolean {
    return this.stepsLeft === 0;
  }

  checkpoint(): RowCheckpoint {
    const { scheduler, generator, latents } = this;
    const snapshot = scheduler.snapshot();
    const state: ImageState = { ...snapshot, key: this.#checkpointKey, generator: generator.snapshot(), latents };
    const { buffer, byteOffset, length } = serialize(state);
    return { done: snapshot.stepIndex, data: new Uint8Array(buffer, byteOffset, length) };
  }

  /**
   * Continues from a checkpoint. Starts over if it is not one of this row, or from another version: that makes the same
   * image, only later.
   */
  resume({ data }: RowCheckpoint): void {
    try {
      const state = deserialize(data) as ImageState;
      const arrays = [state.latents, ...state.history];
      if (state.key !== this.#checkpointKey || arrays.some(({ length }) => length !== this.latents.length)) return;
      const generator = new TorchGenerator(state.generator);
      this.scheduler.restore(state);
      this.generator = generator;
      this.latents.set(state.latents);
    } catch {
      // The bytes are not a checkpoint, or the scheduler cannot continue from it; then it is unchanged.
    }
  }

  /** Everything that a checkpoint must have in common with its row. */
  get #checkpointKey(): string {
    const { request, seed } = this;
    const { scheduler, numInferenceSteps, guidanceScale, guidanceRescale, strength, mask = false, loras } = request;
    const shape = imageShapeKey(request);
    const words = ['2', seed, shape, scheduler, numInferenceSteps, guidanceScale, guidanceRescale];
    if (strength !== undefined) words.push(strength, String(mask));
    if (loras !== undefined) words.push(loraSetKey(loras));
    return words.join(' ');
  }
}
