/**
 * CogView4: the second last layer of a GLM text encoder, a transformer that reads text and picture side by side and is
 * told the sizes of the picture, 16-channel latents, and flow matching whose steps are shifted by the size. Each row has
 * its own prompt, steps, guidance and seed; rows of one size share a call of the transformer if their texts are as long as
 * each other, in blocks of 16 tokens.
 * Source: diffusers `CogView4Pipeline.__call__` with a CPU generator and one seed a picture.
 *
 * Known limits: the original and the target size are that of the picture, nothing is cropped; texts are cut at 1024
 * tokens; no control image, no image input. diffusers' own mask for texts of different lengths is not used: it is added to
 * the attention's scores as 1 and 0, which hides nothing.
 */
import type { LoadedGraph } from '../graphs/load-graph.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import type { PictureFamily } from '../picture/picture-pipeline.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import type { PictureSchedule } from '../picture/picture-row.ts';
import { squareRootShift } from '../schedulers/schedule/flow-shift.ts';
import { linspace } from '../schedulers/schedule/timestep-grid.ts';

/** Of three graphs. */
export function cogView4(model: ModelDirectory): PictureFamily {
  const { embeddingWidth } = model.denoiser;
  const { layers = 0 } = model.textEncoders[0]!;
  const sizes = { original_size: [2], target_size: [2], crop_coords: [2] };
  return {
    encoders: [
      {
        outputs: (graph) => [secondLastHiddenState(graph, layers)],
        gives: (tokens) => [[1, tokens, embeddingWidth]],
      },
    ],
    inputs: {
      sample: 'hidden_states',
      conditioning: { encoder_hidden_states: ['open', embeddingWidth], ...sizes },
    },
    conditioningOf([embedding], { width, height }) {
      const size = Float32Array.of(height, width);
      // The crop is from the top and from the left.
      const cropCoords = new Float32Array(2);
      return { encoder_hidden_states: embedding!, original_size: size, target_size: size, crop_coords: cropCoords };
    },
    scheduleOf: (request) => scheduleFor(model, request),
    // diffusers divides by the scaling factor and, unlike for other models of 16 channels, adds no shift.
    latents: { ...model.latents, shiftFactor: 0 },
  };
}

/** What the layer before the last gives: hidden states are counted from 0, the embeddings, to the last layer's. */
function secondLastHiddenState({ file, session }: LoadedGraph, layers: number): string {
  const output = `hidden_states.${layers - 1}`;
  if (session.outputs.some(({ name }) => name === output)) return output;
  const meaning = `what the second last of ${layers} layers gives (num_hidden_layers of text_encoder/config.json)`;
  throw modelFileError(file, `has no output ${output}, ${meaning}`);
}

/** The steps: whole timesteps from the last to 1, and a shift that grows with the number of the picture's tokens. */
function scheduleFor({ scheduler, latents, denoiser }: ModelDirectory, request: PictureRequest): PictureSchedule {
  const { numTrainTimesteps } = scheduler.config;
  const timesteps = linspace(numTrainTimesteps, 1, request.numInferenceSteps).map(Math.trunc);
  const pixelsOfToken = latents.factor * denoiser.multiple;
  const imageSeqLen = (request.height / pixelsOfToken) * (request.width / pixelsOfToken);
  return {
    dynamicShift: squareRootShift(scheduler.config, imageSeqLen),
    flowGrid: { timesteps, sigmas: timesteps.map((timestep) => timestep / numTrainTimesteps) },
  };
}
