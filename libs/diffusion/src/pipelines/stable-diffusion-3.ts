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
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import type { LoadedGraph } from '../graphs/load-graph.ts';
import { type LoadedPromptEncoder, loadPromptEncoder } from '../graphs/load-prompt-encoder.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { lastHiddenState, secondLastHiddenState, tokensCutByAll } from '../graphs/prompt-encoder.ts';
import type { EncodedPrompt, ReadText } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import { loadPicturePipeline, type PicturePipeline } from '../picture/picture-pipeline.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import type { PictureSchedule } from '../picture/picture-row.ts';
import { interpolatedShift } from '../schedulers/schedule/flow-shift.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';

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
): Promise<PicturePipeline> {
  const graphs = new ModelGraphs(model, options);
  const encoders = [await loadClip(model, graphs, 0), await loadClip(model, graphs, 1)];
  if (model.textEncoders.length > 2) encoders.push(await loadT5(model, graphs));
  const { maxTokens } = encoders[0]!.encoder.tokenizer;
  const { embeddingWidth: width } = model.denoiser;

  /** Tokens of both CLIPs side by side, filled up with zeros, then those of T5; and what the CLIPs give for the whole text. */
  function conditioningOf([clip, clip2, t5]: (readonly Float32Array[])[]): Conditioning {
    const [embedding, pooled] = clip!;
    const [embedding2, pooled2] = clip2!;
    const joined = new Float32Array((maxTokens + T5_TOKENS) * width);
    const [side, side2] = [embedding!.length / maxTokens, embedding2!.length / maxTokens];
    for (let token = 0; token < maxTokens; token++) {
      joined.set(embedding!.subarray(token * side, (token + 1) * side), token * width);
      joined.set(embedding2!.subarray(token * side2, (token + 1) * side2), token * width + side);
    }
    if (t5 !== undefined) joined.set(t5[0]!, maxTokens * width);
    return { encoder_hidden_states: joined, pooled_projections: Float32Array.of(...pooled!, ...pooled2!) };
  }

  async function readText(text: string): Promise<ReadText> {
    const encoded: EncodedPrompt[] = [];
    for (const { encoder } of encoders) encoded.push(await encoder.encode(text));
    const conditioning = conditioningOf(encoded.map(({ outputs }) => outputs));
    return { conditioning, cutTokens: tokensCutByAll(encoded) };
  }

  const trial = conditioningOf(encoders.map(({ trialOutputs }) => trialOutputs));
  const inputs = {
    sample: 'hidden_states',
    conditioning: {
      encoder_hidden_states: [maxTokens + T5_TOKENS, width],
      pooled_projections: [trial['pooled_projections']!.length],
    },
  };
  const scheduleOf = (request: PictureRequest): PictureSchedule => shiftFor(model, request);
  return loadPicturePipeline({ model, graphs, inputs, trial, readText, scheduleOf });
}

/** One that gives the layer before the last, and its projection of the whole text. */
function loadClip(model: ModelDirectory, graphs: ModelGraphs, at: number): Promise<LoadedPromptEncoder> {
  const { tokenizer, width = 0, pooledWidth = 0 } = model.textEncoders[at]!;
  return loadPromptEncoder({
    model,
    graphs,
    at,
    outputs: secondLastAndProjection,
    gives: () => [
      [1, tokenizer.maxTokens, width],
      [1, pooledWidth],
    ],
  });
}

function secondLastAndProjection(graph: LoadedGraph): string[] {
  const { file, session } = graph;
  const pooled = 'text_embeds';
  if (session.outputs.some(({ name }) => name === pooled)) return [secondLastHiddenState(graph), pooled];
  throw modelFileError(file, `has no output ${pooled}, as exports of CLIPTextModelWithProjection have`);
}

/** One that gives the last layer. It reads the padding, too: the original gives it no mask. */
function loadT5(model: ModelDirectory, graphs: ModelGraphs): Promise<LoadedPromptEncoder> {
  return loadPromptEncoder({
    model,
    graphs,
    at: 2,
    outputs: ({ session }) => [lastHiddenState(session)],
    gives: () => [[1, T5_TOKENS, model.denoiser.embeddingWidth]],
  });
}

/** Some models shift their schedule by how many patches the transformer sees of a picture. */
function shiftFor(
  { scheduler, latents, denoiser }: ModelDirectory,
  { width, height }: PictureRequest,
): PictureSchedule {
  if (!scheduler.config.useDynamicShifting) return {};
  const patch = latents.factor * denoiser.multiple;
  return { dynamicShift: interpolatedShift(scheduler.config, (width / patch) * (height / patch)) };
}
