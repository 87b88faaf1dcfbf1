/**
 * Stable Diffusion 1.x and 2.x: a CLIP text encoder, a UNet with classifier-free guidance, and a VAE. Each row has its own
 * prompt, steps, guidance, scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionPipeline.__call__` with a CPU generator and one seed a picture.
 *
 * Known limits: no safety checker, no clip skip, no image input.
 */
import { lastHiddenState, type ReadText } from '../graphs/prompt-encoder.ts';
import { loadPromptEncoder } from '../graphs/load-prompt-encoder.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { loadPicturePipeline, type PicturePipeline } from '../picture/picture-pipeline.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusion(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<PicturePipeline> {
  const graphs = new ModelGraphs(model, options);
  const embeddingShape = [model.textEncoders[0]!.tokenizer.maxTokens, model.denoiser.embeddingWidth] as const;
  const { encoder, trialOutputs } = await loadPromptEncoder({
    model,
    graphs,
    outputs: ({ session }) => [lastHiddenState(session)],
    gives: () => [[1, ...embeddingShape]],
  });

  async function readText(text: string): Promise<ReadText> {
    const { outputs, cutTokens } = await encoder.encode(text);
    return { conditioning: { encoder_hidden_states: outputs[0]! }, cutTokens };
  }

  const inputs = { conditioning: { encoder_hidden_states: embeddingShape } };
  const trial = { encoder_hidden_states: trialOutputs[0]! };
  return loadPicturePipeline({ model, graphs, inputs, trial, readText });
}
