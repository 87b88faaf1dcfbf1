/**
 * CogView4: the second-to-last layer of a GLM text encoder, a transformer that reads text, latents and the image's
 * sizes, 16-channel latents, and flow matching with a shift that depends on the size. Rows of one size share a
 * transformer call if their prompts have the same length in blocks of 16 tokens.
 * Source: diffusers `CogView4Pipeline.__call__` with a CPU generator and one seed per image.
 *
 * Known limits: original and target size are the image's size, without crop; prompts are cut at 1024 tokens; no
 * control image, no image input. diffusers' mask for prompts of different lengths is not used: it adds 1 and 0 to the
 * attention scores, which masks nothing.
 */
import { modelFileError } from '@darkroom/runtime/model-file';
import type { Conditioning, DenoiserInputs } from '../graphs/denoiser-batch.ts';
import type { ModelGraphs } from '../graphs/model-graphs.ts';
import type { EncoderOutputs } from '../graphs/prompt-encoder.ts';
import type { ImageRowInput } from '../image/image-request.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { LoadedGraph } from '../onnx/load-graph.ts';
import type { SchedulerConfig } from '../schedulers/config/scheduler-config.ts';
import { linspace } from '../schedulers/numpy.ts';
import { type ConditioningRequest, type ImageSchedule, StableDiffusionPipeline } from './stable-diffusion.ts';

/** Runs three graphs. */
export class CogView4Pipeline extends StableDiffusionPipeline {
  constructor(model: ModelDirectory, graphs: ModelGraphs) {
    // diffusers divides by the scaling factor but adds no shift, unlike for other models with 16 channels.
    super({ ...model, latents: { ...model.latents, shiftFactor: 0 } }, graphs);
  }

  protected override get encoderOutputs(): readonly EncoderOutputs[] {
    const { denoiser, textEncoders } = this.model;
    const { layers = 0 } = textEncoders[0];
    return [
      {
        outputs: (graph) => [secondLastHiddenState(graph, layers)],
        outputDims: (tokens) => [[1, tokens, denoiser.embeddingWidth]],
      },
    ];
  }

  protected override get denoiserInputs(): DenoiserInputs {
    const sizes = { original_size: [2], target_size: [2], crop_coords: [2] };
    const conditioning = { encoder_hidden_states: ['open', this.model.denoiser.embeddingWidth] as const, ...sizes };
    return { sample: 'hidden_states', conditioning };
  }

  protected override conditioningOf(
    [embedding]: readonly [Float32Array],
    { width, height }: ConditioningRequest,
  ): Conditioning {
    const size = Float32Array.of(height, width);
    // Crop from the top and from the left.
    const cropCoords = new Float32Array(2);
    return { encoder_hidden_states: embedding, original_size: size, target_size: size, crop_coords: cropCoords };
  }

  /** Prescribes whole timesteps from the last to 1, and a shift that grows with the number of image tokens. */
  protected override scheduleOf(request: ImageRowInput): ImageSchedule {
    const { scheduler, latents, denoiser } = this.model;
    const { numTrainTimesteps } = scheduler.config;
    const timesteps = linspace(numTrainTimesteps, 1, request.numInferenceSteps).map(Math.trunc);
    const pixelsOfToken = latents.factor * denoiser.multiple;
    const imageSeqLen = (request.height / pixelsOfToken) * (request.width / pixelsOfToken);
    return {
      ...super.scheduleOf(request),
      dynamicShift: squareRootShift(scheduler.config, imageSeqLen),
      flowGrid: { timesteps, sigmas: timesteps.map((timestep) => timestep / numTrainTimesteps) },
    };
  }
}

/** Returns the name of the second-to-last layer's output; hidden states are numbered from 0 (the embeddings). */
function secondLastHiddenState({ file, session }: LoadedGraph, layers: number): string {
  const output = `hidden_states.${layers - 1}`;
  if (session.outputs.some(({ name }) => name === output)) return output;
  const meaning = `the output of the second-to-last of ${layers} layers (num_hidden_layers of text_encoder/config.json)`;
  throw modelFileError(file, `has no output ${output}, ${meaning}`);
}

/** Returns the shift for a size by its square root (`calculate_shift` of diffusers' `CogView4Pipeline`). */
export function squareRootShift(
  { baseShift, maxShift, baseImageSeqLen }: SchedulerConfig,
  imageSeqLen: number,
): number {
  return Math.sqrt(imageSeqLen / baseImageSeqLen) * maxShift + baseShift;
}
