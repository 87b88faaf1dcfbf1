import { type Conditioning, DenoiserBatch, type DenoiserInputs } from '../graphs/denoiser-batch.ts';
import type { ModelGraphs } from '../graphs/model-graphs.ts';
import { type EncoderOutputs, loadPromptEncoder, type PromptEncoder } from '../graphs/prompt-encoder.ts';
import { smallestSide, tryImageGraphs } from '../graphs/try-image-graphs.ts';
import { LoraLibrary, type RequestLoras } from '../loras/lora-library.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { ImageRowInput } from './image-request.ts';

/** How a family of models uses its text encoders and its denoiser. */
export interface PartInputs {
  encoderOutputs: readonly EncoderOutputs[];
  denoiserInputs: DenoiserInputs;
  /** Builds the denoiser's inputs from the outputs of all text encoders, for a trial call. */
  conditioningOf: (outputs: readonly Float32Array[]) => Conditioning;
}

/** The loaded graphs of an image model; undefined are optional ones that it lacks. */
export type ImageParts = Awaited<ReturnType<typeof loadImageParts>>;

/**
 * Loads a model's graphs and tries each of them once. The trial of one may need the outputs of others.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadImageParts(model: ModelDirectory, graphs: ModelGraphs, family: PartInputs) {
  const { latents, loras } = model;
  const encoders: PromptEncoder[] = [];
  const outputs: Float32Array[] = [];
  for (const [at, each] of family.encoderOutputs.entries()) {
    const { encoder, trial } = await loadPromptEncoder({ model, graphs, at, ...each });
    encoders.push(encoder);
    outputs.push(...trial);
  }
  const graph = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const safetyChecker = await graphs.loadSafetyChecker();
  const upscalers = await graphs.loadUpscalers();
  const extraChannels = model.denoiser.inChannels - latents.channels;
  const denoiser = new DenoiserBatch(graph, { ...family.denoiserInputs, extraChannels });
  const conditioning = family.conditioningOf(outputs);
  await tryImageGraphs({ model, denoiser: graph, batch: denoiser, vaeDecoder, conditioning });
  const vaeEncoder = await graphs.loadVaeEncoder(smallestSide(model.card));
  const library = new LoraLibrary(loras);

  /** Reads a request's adapters. Loads the graphs that take them on first use. */
  async function readLoras(chosen: NonNullable<ImageRowInput['loras']>): Promise<RequestLoras> {
    const sets = library.setOf(chosen);
    if (sets.denoiser !== undefined && loras.denoiser !== undefined && !denoiser.hasLoras)
      denoiser.addLoras(await graphs.loadDenoiserWithLoras(loras.denoiser.path), loras.denoiser.layers);
    for (const [at, encoder] of encoders.entries()) {
      const graph = loras.encoders[at];
      if (sets.encoders[at] === undefined || graph === undefined || encoder.hasLoras) continue;
      encoder.addLoras(await graphs.loadTextEncoderWithLoras(graph.path), graph.layers);
    }
    return sets;
  }

  return { encoders, denoiser, vaeDecoder, vaeEncoder, safetyChecker, upscalers, readLoras };
}
