import { deserialize, serialize } from 'node:v8';
import { DarkroomError, type PipelineRow, type RowCheckpoint, type RowRequest } from '@darkroom/core';
import { pictureShapeKey, seedOfPicture } from '@darkroom/kinds';
import type { ModelDirectory } from '../model/model-directory.ts';
import { TorchGenerator, type TorchGeneratorSnapshot } from '../random/torch-generator.ts';
import { createScheduler } from '../schedulers/create-scheduler.ts';
import type { CreateSchedulerOptions, Scheduler, SchedulerSnapshot } from '../schedulers/scheduler.ts';
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import { type LoraSet, loraSetKey } from '../loras/lora-set.ts';
import { lengthOf } from '../vae/plane.ts';
import type { PictureRequest } from './picture-request.ts';
import type { PictureSource } from './picture-source.ts';
import { type StartedLatents, startLatents } from './start-latents.ts';
import { beginUpscaling, type Upscaling } from './upscaling.ts';

export interface PictureRowRequest extends RowRequest {
  /**
   * By output index: what to start from instead of the noise of the seed; channels × height × width values of unit
   * variance. Noise of later steps is still the seed's, from its start, as with diffusers' `latents`.
   */
  readonly initialNoise?: ReadonlyMap<number, Float32Array>;
}

/** One picture on its way. */
export interface PictureRow extends PipelineRow, StartedLatents {
  /** Steps taken, 0 … totalSteps, those of enlarging among them. */
  readonly step: number;
  readonly totalSteps: number;
  readonly request: PictureRequest;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly generator: TorchGenerator;
  /** channels, height, width. */
  readonly latentDims: readonly [number, number, number];
  /** The latest step's estimate of the finished latents. */
  readonly predictedOriginal: Float32Array;
  readonly conditional: Conditioning;
  /** Of the negative prompt; undefined without guidance, when that half is not computed. */
  readonly unconditional: Conditioning | undefined;
  /** undefined where the picture stays as large as the model makes it. */
  readonly upscaling: Upscaling | undefined;
  /** What its adapters add; undefined without. */
  readonly loras: LoraSet | undefined;
  /** Tokens at the ends of the texts that were not read, of texts that were read at all. */
  readonly cutTokens: { readonly prompt: number; readonly negativePrompt: number };
}

/** A text as a denoiser is told it. */
export interface ReadText {
  readonly conditioning: Conditioning;
  /** Tokens at the text's end that none of the encoders read. */
  readonly cutTokens: number;
}

/** What all pictures of a request have in common. */
export interface CreatePictureRowsOptions {
  model: Pick<ModelDirectory, 'latents' | 'scheduler'>;
  rowRequest: PictureRowRequest;
  request: PictureRequest;
  conditional: ReadText;
  unconditional: ReadText | undefined;
  /** The picture it starts from. */
  source: PictureSource | undefined;
  loras: LoraSet | undefined;
  /** What the family derives of its schedule from the picture; models of flow matching do. */
  schedule: PictureSchedule;
}

/** What a scheduler is told besides the model's config and the number of steps. */
export type PictureSchedule = Pick<
  CreateSchedulerOptions,
  'dynamicShift' | 'flowGrid' | 'skippedSteps' | 'distilledShare'
>;

/** What a checkpoint holds, in V8's format: little more bytes than the latents themselves. */
interface PictureState extends SchedulerSnapshot {
  key: string;
  generator: TorchGeneratorSnapshot;
  latents: Float32Array;
}

/**
 * Makes a row for each picture asked for, from noise or from where its checkpoint says it was.
 *
 * @throws DarkroomError `invalid_request` if the scheduler cannot take so many steps.
 */
export function createPictureRows(options: CreatePictureRowsOptions): PictureRow[] {
  const { model, rowRequest, request, conditional, unconditional } = options;
  const { channels, factor } = model.latents;
  const latentDims = [channels, request.height / factor, request.width / factor] as const;
  const indexes = rowRequest.indexes ?? Array.from({ length: request.n }, (_, index) => index);
  return indexes.map((index) => {
    const start = startRow(options, { index, latentDims });
    const upscaling = beginUpscaling(request);
    const { length: denoisingSteps } = start.scheduler.timesteps;
    return {
      ...start,
      index,
      request,
      upscaling,
      // Those that are enlarged share steps with each other.
      get shapeKey() {
        const isDenoised = start.scheduler.stepIndex === denoisingSteps;
        return `${pictureShapeKey(request)}${isDenoised && upscaling ? ` x${upscaling.upscale}` : ''}`;
      },
      slots: 1,
      latentDims,
      conditional: conditional.conditioning,
      unconditional: unconditional?.conditioning,
      loras: options.loras,
      cutTokens: { prompt: conditional.cutTokens, negativePrompt: unconditional?.cutTokens ?? 0 },
      predictedOriginal: new Float32Array(start.latents.length),
      totalSteps: denoisingSteps + (upscaling?.pieces ?? 0),
      get step() {
        return start.scheduler.stepIndex + (upscaling?.done ?? 0);
      },
      get stepsLeft() {
        return this.totalSteps - this.step;
      },
      get isDone() {
        return this.stepsLeft === 0;
      },
    };
  });
}

export function checkpointPictureRow(row: PictureRow): RowCheckpoint {
  const { scheduler, generator, latents } = row;
  const snapshot = scheduler.snapshot();
  const state: PictureState = { ...snapshot, key: checkpointKey(row), generator: generator.snapshot(), latents };
  const { buffer, byteOffset, length } = serialize(state);
  return { done: snapshot.stepIndex, data: new Uint8Array(buffer, byteOffset, length) };
}

function startRow(
  options: CreatePictureRowsOptions,
  { index, latentDims }: Pick<PictureRow, 'index' | 'latentDims'>,
): Pick<PictureRow, 'seed' | 'scheduler' | 'generator' | keyof StartedLatents> {
  const { request, rowRequest, source, model } = options;
  const checkpoint = rowRequest.checkpoints?.get(index);
  const noise = rowRequest.initialNoise?.get(index);
  const givenNoise = noise && checkNoise(noise, latentDims);
  const seed = seedOfPicture(request.seed, index);
  const length = lengthOf(latentDims);
  const scheduler = createRowScheduler(options);
  const generator = new TorchGenerator({ seed });
  const { strength = 1 } = request;
  // What a row needs of its picture later is made anew, and is no part of a checkpoint.
  const start = startLatents({ source, strength, scheduler, generator, facts: model.latents, length, givenNoise });
  const state = checkpoint && readState(checkpoint, { key: checkpointKey({ request, seed }), length });
  if (state !== undefined) {
    try {
      const restored = new TorchGenerator(state.generator);
      scheduler.restore(state);
      return { seed, scheduler, ...start, generator: restored, latents: state.latents.slice() };
    } catch {
      // Written by another version: the same picture comes out of a fresh start, only later.
    }
  }
  return { seed, scheduler, generator, ...start };
}

/** undefined if the bytes are not those of such a row; the arrays lie in them. */
function readState(
  { data }: RowCheckpoint,
  { key, length }: { key: string; length: number },
): PictureState | undefined {
  try {
    const state = deserialize(data) as PictureState;
    const arrays = [state.latents, ...state.history];
    return state.key === key && arrays.every((array) => array.length === length) ? state : undefined;
  } catch {
    return undefined;
  }
}

function checkNoise(noise: Float32Array, latentDims: readonly number[]): Float32Array {
  const length = lengthOf(latentDims);
  if (noise.length === length && noise.every((value) => Number.isFinite(value))) return noise;
  const expected = `${length} finite numbers, ${latentDims.join(' × ')} (channels, height, width)`;
  const message = `initialNoise: ${noise.length} values were given; expected ${expected}`;
  throw new DarkroomError('invalid_request', 'diffusion.create-rows', message);
}

function createRowScheduler({ request, model, schedule }: CreatePictureRowsOptions): Scheduler {
  const { config } = model.scheduler;
  const { scheduler, numInferenceSteps } = request;
  try {
    return createScheduler(scheduler, { config, numInferenceSteps, ...schedule });
  } catch (error) {
    const message = `${scheduler} with ${numInferenceSteps} steps: ${(error as Error).message}`;
    throw new DarkroomError('invalid_request', 'diffusion.create-rows', message, error);
  }
}

/** All that a checkpoint must share with the row it is for. */
function checkpointKey({ request, seed }: Pick<PictureRow, 'request' | 'seed'>): string {
  const { scheduler, numInferenceSteps, guidanceScale, guidanceRescale, strength, mask = false, loras } = request;
  const shape = pictureShapeKey(request);
  const words = ['2', seed, shape, scheduler, numInferenceSteps, guidanceScale, guidanceRescale];
  if (strength !== undefined) words.push(strength, String(mask));
  if (loras !== undefined) words.push(loraSetKey(loras));
  return words.join(' ');
}
