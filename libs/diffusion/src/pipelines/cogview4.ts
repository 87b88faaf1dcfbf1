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
import type { Pipeline } from '../pipeline.ts';
import { squareRootShift } from '../schedulers/schedule/flow-shift.ts';
import { linspace } from '../schedulers/schedule/timestep-grid.ts';
import { decodePicture, previewPicture } from '../picture/decode-picture.ts';
import { denoise } from '../picture/denoise.ts';
import { DenoiserBatch } from '../graphs/denoiser-batch.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { checkPictureRequest } from '../picture/picture-request.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import { checkpointPictureRow, createPictureRows } from '../picture/picture-row.ts';
import type { PictureRow, PictureSchedule } from '../picture/picture-row.ts';
import { createPromptEncoder } from '../graphs/prompt-encoder.ts';
import type { ReadText } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs, tryTextEncoder } from '../graphs/try-picture-graphs.ts';

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadCogView4(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card } = model;
  const { embeddingWidth } = model.denoiser;
  const { tokenizer, layers = 0 } = model.textEncoders[0]!;
  // diffusers divides by the scaling factor and, unlike for other models of 16 channels, adds no shift.
  const facts = { ...model.latents, shiftFactor: 0 };
  const graphs = new ModelGraphs(model, options);
  const textEncoder = await graphs.loadTextEncoder(0);
  const outputs = [secondLastHiddenState(textEncoder, layers)];
  const promptEncoder = createPromptEncoder({ tokenizer, session: textEncoder.session, outputs });

  async function encode(text: string, request: PictureRequest): Promise<ReadText> {
    const { outputs, cutTokens } = await promptEncoder.encode(text);
    return { conditioning: conditioningOf(outputs[0]!, request), cutTokens };
  }

  const gives = [[1, promptEncoder.tokenizer.trialIds.length, embeddingWidth]];
  const [embedding] = await tryTextEncoder({ file: textEncoder.file, promptEncoder, tokenizer, gives });
  await graphs.settle();
  const transformer = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const batch = new DenoiserBatch(transformer, {
    sample: 'hidden_states',
    conditioning: {
      encoder_hidden_states: ['open', embeddingWidth],
      original_size: [2],
      target_size: [2],
      crop_coords: [2],
    },
  });
  const conditioning = conditioningOf(embedding!, card.sizes.default);
  await tryPictureGraphs({ model, denoiser: transformer, batch, vaeDecoder, conditioning });

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const conditional = await encode(request.prompt, request);
      const unconditional = request.guidanceScale > 1 ? await encode(request.negativePrompt, request) : undefined;
      const schedule = scheduleOf(model, request);
      return createPictureRows({ model, rowRequest, request, conditional, unconditional, schedule });
    },

    step: (rows) => denoise(rows, batch),
    preview: (row) => previewPicture(row, model.preview),
    finish: (row) => decodePicture(row, { vaeDecoder, facts }),
    checkpoint: checkpointPictureRow,

    settle: () => graphs.settle(),
    dispose: () => graphs.dispose(),
  };
}

/** What the layer before the last gives: hidden states are counted from 0, the embeddings, to the last layer's. */
function secondLastHiddenState({ file, session }: LoadedGraph, layers: number): string {
  const output = `hidden_states.${layers - 1}`;
  if (session.outputs.some(({ name }) => name === output)) return output;
  const meaning = `what the second last of ${layers} layers gives (num_hidden_layers of text_encoder/config.json)`;
  throw modelFileError(file, `has no output ${output}, ${meaning}`);
}

function conditioningOf(embedding: Float32Array, { width, height }: Pick<PictureRequest, 'width' | 'height'>) {
  const size = Float32Array.of(height, width);
  return {
    encoder_hidden_states: embedding,
    original_size: size,
    target_size: size,
    // From the top and from the left.
    crop_coords: new Float32Array(2),
  };
}

/** The steps: whole timesteps from the last to 1, and a shift that grows with the number of the picture's tokens. */
function scheduleOf({ scheduler, latents, denoiser }: ModelDirectory, request: PictureRequest): PictureSchedule {
  const { numTrainTimesteps, flow } = scheduler.config;
  const timesteps = linspace(numTrainTimesteps, 1, request.numInferenceSteps).map(Math.trunc);
  const pixelsOfToken = latents.factor * denoiser.multiple;
  const imageSeqLen = (request.height / pixelsOfToken) * (request.width / pixelsOfToken);
  return {
    dynamicShift: squareRootShift(flow!, imageSeqLen),
    flowGrid: { timesteps, sigmas: timesteps.map((timestep) => timestep / numTrainTimesteps) },
  };
}
