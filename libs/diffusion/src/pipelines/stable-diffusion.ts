/**
 * Stable Diffusion 1.x and 2.x text-to-picture on rows: each picture has its own prompt, seed, steps, guidance and
 * scheduler, and all pictures of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionPipeline.__call__` with a CPU generator and one seed a picture.
 *
 * Known limits: no safety checker, no clip skip, no guidance rescale, no image input.
 */
import { DarkroomError, pictureShapeKey, seedOfPicture } from '@darkroom/core';
import type { Device } from '@darkroom/runtime';
import { loadGraph } from '../load-graph.ts';
import type { ModelDirectory } from '../model-directory.ts';
import type { Pipeline, PipelineRow, RowCheckpoint } from '../pipeline.ts';
import { createTorchGenerator, restoreTorchGenerator } from '../random/torch-generator.ts';
import type { TorchGenerator, TorchGeneratorSnapshot } from '../random/torch-generator.ts';
import { createScheduler } from '../schedulers/create-scheduler.ts';
import type { Scheduler } from '../schedulers/scheduler.ts';
import { interleaveSample, projectLatents } from './latents-to-rgb.ts';
import { checkPictureRequest } from './picture-request.ts';
import type { PictureRequest } from './picture-request.ts';
import { createPromptEncoder } from './prompt-encoder.ts';
import { decodeRowSnapshot, encodeRowSnapshot } from './row-snapshot.ts';
import { tryStableDiffusion } from './try-stable-diffusion.ts';
import { createUnetBatch } from './unet-batch.ts';
import type { UnetBatchRow } from './unet-batch.ts';

/** One picture on its way. */
export interface PictureRow extends PipelineRow {
  readonly request: PictureRequest;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly generator: TorchGenerator;
  /** channels, height, width. */
  readonly latentDims: readonly [number, number, number];
  readonly latents: Float32Array;
  /** The latest step's estimate of the finished latents. */
  readonly predictedOriginal: Float32Array;
  readonly embedding: Float32Array;
  /** Of the negative prompt; undefined at a guidance of 1 or less, where diffusers does not compute that half. */
  readonly negativeEmbedding: Float32Array | undefined;
}

export interface LoadPipelineOptions {
  device?: Device;
  /** CUDA's number of the device. */
  deviceId?: number;
  /** Threads of one model call. */
  threads?: number;
}

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusion(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card, tokenizer, latents: latentFacts, preview } = model;
  const textEncoder = await loadGraph(model, 'textEncoder', options);
  const unet = await loadGraph(model, 'unet', options);
  const vaeDecoder = await loadGraph(model, 'vaeDecoder', options);
  const promptEncoder = createPromptEncoder(tokenizer, textEncoder.session);
  const unetBatch = createUnetBatch(unet, tokenizer.maxTokens);
  await tryStableDiffusion({ model, textEncoder, promptEncoder, unet, unetBatch, vaeDecoder });
  const { config } = model.scheduler;
  const { channels, factor } = latentFacts;

  return {
    card,

    async createRows({ input, indexes, checkpoints }) {
      const request = checkPictureRequest(input, card);
      const embedding = await promptEncoder.encode(request.prompt);
      const hasGuidance = request.guidanceScale > 1;
      const negativeEmbedding = hasGuidance ? await promptEncoder.encode(request.negativePrompt) : undefined;
      const latentDims = [channels, request.height / factor, request.width / factor] as const;
      return (indexes ?? Array.from({ length: request.n }, (_, index) => index)).map((index) => {
        const start = startRow({ request, index, latentDims, config, checkpoint: checkpoints?.get(index) });
        return {
          ...start,
          index,
          request,
          shapeKey: pictureShapeKey(request),
          previewEvery: request.previewEvery,
          latentDims,
          embedding,
          negativeEmbedding,
          predictedOriginal: new Float32Array(start.latents.length),
          totalSteps: start.scheduler.timesteps.length,
          get step() {
            return start.scheduler.stepIndex;
          },
        };
      });
    },

    async step(rows) {
      // All model calls first: if one of them fails, no row has moved.
      const calls = unetBatch.hasTimestepPerRow ? [rows] : groupByTimestep(rows);
      const outputs: Float32Array[] = [];
      for (const call of calls) {
        outputs.push((await unetBatch.run(call.flatMap(batchRowsOf), call[0]!.latentDims)).data);
      }

      const failures: { row: PictureRow; error: DarkroomError }[] = [];
      let modelRows = 0;
      for (const [position, call] of calls.entries()) {
        let offset = 0;
        for (const row of call) {
          const length = row.latents.length;
          const halves = row.negativeEmbedding === undefined ? 1 : 2;
          const output = outputs[position]!.subarray(offset, offset + halves * length);
          offset += halves * length;
          modelRows += halves;
          const modelOutput = halves === 1 ? output : guide(output, row.request.guidanceScale);
          const error = stepRow(row, modelOutput);
          if (error !== undefined) failures.push({ row, error });
        }
      }
      return { modelRows, failures };
    },

    preview({ step, predictedOriginal, latentDims: [, height, width] }) {
      if (preview === undefined || step === 0) return undefined;
      return { data: projectLatents(predictedOriginal, preview), facts: { width, height } };
    },

    async finish({ latents, latentDims, request: { width, height }, seed }) {
      const scaling = Math.fround(latentFacts.scalingFactor);
      const shift = Math.fround(latentFacts.shiftFactor);
      const scaled = latents.map((value) => Math.fround(value / scaling) + shift);
      const feeds = { latent_sample: { data: scaled, dims: [1, ...latentDims] } };
      const { data } = await vaeDecoder.session.run(feeds, vaeDecoder.session.outputs[0]!.name);
      return { data: interleaveSample(data), facts: { seed, width, height } };
    },

    checkpoint(row) {
      const { stepIndex, history } = row.scheduler.snapshot();
      const facts: PictureFacts = { key: checkpointKey(row), stepIndex, generator: row.generator.snapshot() };
      return { step: stepIndex, data: encodeRowSnapshot({ facts, arrays: [row.latents, ...history] }) };
    },

    async dispose() {
      await Promise.all([textEncoder, unet, vaeDecoder].map(({ session }) => session.dispose()));
    },
  };
}

interface PictureFacts {
  key: string;
  stepIndex: number;
  generator: TorchGeneratorSnapshot;
}

interface StartRowOptions {
  request: PictureRequest;
  index: number;
  latentDims: readonly [number, number, number];
  config: ModelDirectory['scheduler']['config'];
  checkpoint: RowCheckpoint | undefined;
}

/** From noise, or from where a checkpoint says the row was. */
function startRow(options: StartRowOptions): Pick<PictureRow, 'seed' | 'scheduler' | 'generator' | 'latents'> {
  const { request, index, latentDims, config, checkpoint } = options;
  const seed = seedOfPicture(request.seed, index);
  const length = latentDims[0] * latentDims[1] * latentDims[2];
  const create = () => createRowScheduler(request, config);
  if (checkpoint !== undefined) {
    const snapshot = decodeRowSnapshot(checkpoint.data, length);
    const facts = snapshot?.facts as PictureFacts | undefined;
    const [latents, ...history] = snapshot?.arrays ?? [];
    if (latents !== undefined && facts?.key === checkpointKey({ request, seed })) {
      const scheduler = create();
      try {
        scheduler.restore({ stepIndex: facts.stepIndex, history });
        return { seed, scheduler, generator: restoreTorchGenerator(facts.generator), latents };
      } catch {
        // Written by another version: the same picture comes out of a fresh start, only later.
      }
    }
  }
  const scheduler = create();
  const generator = createTorchGenerator(seed);
  const latents = new Float32Array(length);
  generator.fillNormal(latents);
  const sigma = Math.fround(scheduler.initNoiseSigma);
  for (let at = 0; at < length; at++) latents[at] = latents[at]! * sigma;
  return { seed, scheduler, generator, latents };
}

function createRowScheduler({ scheduler, numInferenceSteps }: PictureRequest, config: StartRowOptions['config']) {
  try {
    return createScheduler(scheduler, { config, numInferenceSteps });
  } catch (error) {
    const message = `${scheduler} with ${numInferenceSteps} steps: ${(error as Error).message}`;
    throw new DarkroomError({ code: 'invalid_request', op: 'diffusion.create-rows', message, cause: error });
  }
}

/** All that a checkpoint must share with the row it is for. */
function checkpointKey({ request, seed }: Pick<PictureRow, 'request' | 'seed'>): string {
  const { scheduler, numInferenceSteps, guidanceScale } = request;
  return `1 ${seed} ${pictureShapeKey(request)} ${scheduler} ${numInferenceSteps} ${guidanceScale}`;
}

function timestepOf({ scheduler }: PictureRow): number {
  return scheduler.timesteps[scheduler.stepIndex]!;
}

function groupByTimestep(rows: readonly PictureRow[]): PictureRow[][] {
  const groups = new Map<number, PictureRow[]>();
  for (const row of rows) {
    const group = groups.get(timestepOf(row));
    if (group === undefined) groups.set(timestepOf(row), [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

/** The rows that a picture takes up in the UNet's batch: without and with its prompt, or only with. */
function batchRowsOf(row: PictureRow): UnetBatchRow[] {
  const timestep = timestepOf(row);
  const writeSample: UnetBatchRow['writeSample'] = (target, offset) =>
    row.scheduler.scaleModelInput(row.latents, target, offset);
  const conditional = { writeSample, timestep, embedding: row.embedding };
  if (row.negativeEmbedding === undefined) return [conditional];
  return [{ writeSample, timestep, embedding: row.negativeEmbedding }, conditional];
}

/** Classifier-free guidance in float32: uncond + scale · (cond − uncond), written over the first half of the output. */
function guide(output: Float32Array, guidanceScale: number): Float32Array {
  const length = output.length / 2;
  const scale = Math.fround(guidanceScale);
  for (let at = 0; at < length; at++) {
    const unconditional = output[at]!;
    const difference = Math.fround(output[length + at]! - unconditional);
    output[at] = unconditional + Math.fround(scale * difference);
  }
  return output.subarray(0, length);
}

function stepRow(row: PictureRow, modelOutput: Float32Array): DarkroomError | undefined {
  const { scheduler, generator, latents: sample, predictedOriginal } = row;
  try {
    const fillNoise = (target: Float32Array): void => generator.fillNormal(target);
    scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise });
    if (sample.every((value) => Number.isFinite(value))) return undefined;
    return rowError('the picture could not be made: the model gave values that are not numbers');
  } catch (error) {
    return rowError('the picture could not be made: the scheduler failed', error);
  }
}

function rowError(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError({ code: 'engine_failed', op: 'diffusion.step', message, cause });
}
