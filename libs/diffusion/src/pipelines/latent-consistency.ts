/**
 * Latent consistency models: Stable Diffusion distilled to a few steps. The UNet is told the guidance, so that one row of
 * its batch is enough for a picture; negative prompts and guidance rescale are without effect.
 * Source: Luo et al. 2023, "Latent Consistency Models"; diffusers `LatentConsistencyModelPipeline.__call__`.
 *
 * Known limits: no safety checker, no clip skip, no image input.
 */
import { loadPromptEncoder } from '../graphs/load-prompt-encoder.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { lastHiddenState, type ReadText } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { loadPicturePipeline, type PicturePipeline } from '../picture/picture-pipeline.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadLatentConsistency(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<PicturePipeline> {
  const { embeddingWidth, guidanceWidth = 0 } = model.denoiser;
  const graphs = new ModelGraphs(model, options);
  const embeddingShape = [model.textEncoders[0]!.tokenizer.maxTokens, embeddingWidth] as const;
  const { encoder, trialOutputs } = await loadPromptEncoder({
    model,
    graphs,
    outputs: ({ session }) => [lastHiddenState(session)],
    gives: () => [[1, ...embeddingShape]],
  });

  async function readText(text: string, { guidanceScale }: PictureRequest): Promise<ReadText> {
    const { outputs, cutTokens } = await encoder.encode(text);
    const guidance = embedGuidance(guidanceScale, guidanceWidth);
    return { conditioning: { encoder_hidden_states: outputs[0]!, timestep_cond: guidance }, cutTokens };
  }

  const inputs = { conditioning: { encoder_hidden_states: embeddingShape, timestep_cond: [guidanceWidth] } };
  const trial = { encoder_hidden_states: trialOutputs[0]!, timestep_cond: embedGuidance(1, guidanceWidth) };
  return loadPicturePipeline({ model, graphs, inputs, trial, readText, readNegative: null });
}

/**
 * The guidance as the UNet reads it: sines and cosines of (guidance − 1) · 1000, in float32. The paper counts from 0 where
 * pipelines count from 1.
 * Source: diffusers `get_guidance_scale_embedding`.
 */
function embedGuidance(guidanceScale: number, width: number): Float32Array {
  const scaled = Math.fround(Math.fround(guidanceScale - 1) * 1000);
  const half = Math.floor(width / 2);
  const distance = Math.fround(Math.fround(Math.log(10_000)) / (half - 1));
  // An odd width ends in a 0.
  const embedding = new Float32Array(width);
  for (let at = 0; at < half; at++) {
    const frequency = Math.fround(Math.exp(Math.fround(at * -distance)));
    const angle = Math.fround(scaled * frequency);
    embedding[at] = Math.sin(angle);
    embedding[half + at] = Math.cos(angle);
  }
  return embedding;
}
