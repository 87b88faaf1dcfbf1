/**
 * Stable Diffusion 3 and 3.5, Turbo included: two CLIP text encoders and a T5 that a model may come without, a transformer
 * that is trained with flow matching, and a VAE. Each row has its own prompt, steps, guidance, scheduler and seed; rows of
 * one size share the transformer call of a step.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers"; diffusers `StableDiffusion3Pipeline.__call__` with a CPU
 * generator and one seed a picture.
 *
 * Known limits: all encoders read the same prompt, T5 the first 256 tokens of it; no skip layer guidance, no IP adapter, no
 * clip skip, no image input.
 */
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import type { Pipeline } from '../pipeline.ts';
import { interpolatedShift } from '../schedulers/schedule/flow-shift.ts';
import { decodePicture, previewPicture } from '../picture/decode-picture.ts';
import { denoise } from '../picture/denoise.ts';
import { DenoiserBatch } from '../graphs/denoiser-batch.ts';
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { checkPictureRequest } from '../picture/picture-request.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import { checkpointPictureRow, createPictureRows } from '../picture/picture-row.ts';
import type { PictureRow, PictureSchedule } from '../picture/picture-row.ts';
import {
  createPromptEncoder,
  lastHiddenState,
  secondLastHiddenState,
  tokensCutByAll,
} from '../graphs/prompt-encoder.ts';
import type { EncodedPrompt, PromptEncoder, ReadText } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs, tryTextEncoder } from '../graphs/try-picture-graphs.ts';

/** Tokens that T5 gives of each text. Where there is no T5, as many of zeros take their place. */
const T5_TOKENS = 256;

/**
 * Loads the model's graphs, five or without T5 four, and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusion3(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card, latents: facts } = model;
  const graphs = new ModelGraphs(model, options);
  const clip = await loadClip(model, 0, graphs);
  const clip2 = await loadClip(model, 1, graphs);
  await graphs.settle();
  const t5 = model.textEncoders.length > 2 ? await loadT5(model, graphs) : undefined;
  await graphs.settle();
  const transformer = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const { maxTokens } = clip.encoder.tokenizer;
  const { embeddingWidth: width } = model.denoiser;

  /** Tokens of both CLIPs side by side, filled up with zeros, then those of T5; and what the CLIPs give for the whole text. */
  function conditioningOf([clipOutputs, clip2Outputs, t5Outputs]: Outputs[]): Conditioning {
    const [embedding, pooled] = clipOutputs!;
    const [embedding2, pooled2] = clip2Outputs!;
    const joined = new Float32Array((maxTokens + T5_TOKENS) * width);
    const [side, side2] = [embedding!.length / maxTokens, embedding2!.length / maxTokens];
    for (let token = 0; token < maxTokens; token++) {
      joined.set(embedding!.subarray(token * side, (token + 1) * side), token * width);
      joined.set(embedding2!.subarray(token * side2, (token + 1) * side2), token * width + side);
    }
    if (t5Outputs !== undefined) joined.set(t5Outputs[0]!, maxTokens * width);
    return { encoder_hidden_states: joined, pooled_projections: Float32Array.of(...pooled!, ...pooled2!) };
  }

  const encoders = [clip, clip2, ...(t5 === undefined ? [] : [t5])];
  const trial = conditioningOf(encoders.map(({ trialOutputs }) => trialOutputs));
  const batch = new DenoiserBatch(transformer, {
    sample: 'hidden_states',
    conditioning: {
      encoder_hidden_states: [maxTokens + T5_TOKENS, width],
      pooled_projections: [trial['pooled_projections']!.length],
    },
  });
  await tryPictureGraphs({ model, denoiser: transformer, batch, vaeDecoder, conditioning: trial });

  async function encode(text: string): Promise<ReadText> {
    const encoded: EncodedPrompt[] = [];
    for (const { encoder } of encoders) encoded.push(await encoder.encode(text));
    const conditioning = conditioningOf(encoded.map(({ outputs }) => outputs));
    return { conditioning, cutTokens: tokensCutByAll(encoded) };
  }

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const conditional = await encode(request.prompt);
      const unconditional = request.guidanceScale > 1 ? await encode(request.negativePrompt) : undefined;
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

/** What an encoder gives for a text. */
type Outputs = readonly Float32Array[];

interface LoadedEncoder {
  readonly encoder: PromptEncoder;
  /** For the text it was tried with. */
  readonly trialOutputs: Outputs;
}

/** One that gives the layer before the last, and its projection of the whole text. */
async function loadClip(model: ModelDirectory, at: number, graphs: ModelGraphs): Promise<LoadedEncoder> {
  const graph = await graphs.loadTextEncoder(at);
  const { file, session } = graph;
  const pooled = 'text_embeds';
  if (session.outputs.every(({ name }) => name !== pooled)) {
    throw modelFileError(file, `has no output ${pooled}, as exports of CLIPTextModelWithProjection have`);
  }
  const { tokenizer, width = 0, pooledWidth = 0 } = model.textEncoders[at]!;
  const encoder = createPromptEncoder({ tokenizer, session, outputs: [secondLastHiddenState(graph), pooled] });
  const gives = [
    [1, tokenizer.maxTokens, width],
    [1, pooledWidth],
  ];
  return { encoder, trialOutputs: await tryTextEncoder({ file, promptEncoder: encoder, tokenizer, gives }) };
}

/** One that gives the last layer. It reads the padding, too: the original gives it no mask. */
async function loadT5(model: ModelDirectory, graphs: ModelGraphs): Promise<LoadedEncoder> {
  const graph = await graphs.loadTextEncoder(2);
  const { file, session } = graph;
  const { tokenizer } = model.textEncoders[2]!;
  const encoder = createPromptEncoder({ tokenizer, session, outputs: [lastHiddenState(session)] });
  const gives = [[1, T5_TOKENS, model.denoiser.embeddingWidth]];
  return { encoder, trialOutputs: await tryTextEncoder({ file, promptEncoder: encoder, tokenizer, gives }) };
}

/** Some models shift their schedule by how many patches the transformer sees of a picture. */
function scheduleOf(
  { scheduler, latents, denoiser }: ModelDirectory,
  { width, height }: PictureRequest,
): PictureSchedule {
  const { flow } = scheduler.config;
  if (flow?.useDynamicShifting !== true) return {};
  const patch = latents.factor * denoiser.multiple;
  return { dynamicShift: interpolatedShift(flow, (width / patch) * (height / patch)) };
}
