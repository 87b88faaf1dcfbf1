/**
 * Stable Diffusion XL, SDXL-Turbo included: two CLIP text encoders whose second last layers are read side by side, the
 * pooled embedding of the second, and the sizes of the picture as time ids. Each row has its own prompt, steps, guidance,
 * scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionXLPipeline.__call__` with a CPU generator and one seed a picture.
 *
 * Known limits: both encoders read the same prompt; the original and the target size are that of the picture, nothing is
 * cropped; no refiner, no watermark, no clip skip, no image input.
 */
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import { loadPromptEncoder } from '../graphs/load-prompt-encoder.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { type ReadText, secondLastHiddenState, tokensCutByAll } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { loadPicturePipeline, type PicturePipeline } from '../picture/picture-pipeline.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';

/**
 * Loads the model's four graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusionXl(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<PicturePipeline> {
  const { embeddingWidth } = model.denoiser;
  const [first, second] = [model.textEncoders[0]!, model.textEncoders[1]!];
  const { maxTokens } = first.tokenizer;
  const { pooledWidth = 0, width: width2 = 0 } = second;
  const { width = embeddingWidth - width2 } = first;
  const graphs = new ModelGraphs(model, options);
  const clip = await loadPromptEncoder({
    model,
    graphs,
    outputs: (graph) => [secondLastHiddenState(graph)],
    gives: () => [[1, maxTokens, width]],
  });
  const clip2 = await loadPromptEncoder({
    model,
    graphs,
    at: 1,
    outputs: (graph) => [secondLastHiddenState(graph), 'text_embeds'],
    gives: () => [
      [1, maxTokens, width2],
      [1, pooledWidth],
    ],
  });

  async function readText(text: string, request: Pick<PictureRequest, 'width' | 'height'>): Promise<ReadText> {
    const encoded = [await clip.encoder.encode(text), await clip2.encoder.encode(text)] as const;
    const [[embedding], [embedding2, pooled]] = [encoded[0].outputs, encoded[1].outputs];
    const embeddings = [embedding!, embedding2!];
    const conditioning = conditioningOf({ embeddings, maxTokens, pooled: pooled!, ...request });
    return { conditioning, cutTokens: tokensCutByAll(encoded) };
  }

  async function readNegative({ negativePrompt, ...request }: PictureRequest, like: Conditioning): Promise<ReadText> {
    if (negativePrompt !== '' || !model.zeroesEmptyNegative) return readText(negativePrompt, request);
    // Such models were trained with zeros in place of the embeddings of no text.
    const zeros = (input: string): Float32Array => new Float32Array(like[input]!.length);
    const texts = { encoder_hidden_states: zeros('encoder_hidden_states'), text_embeds: zeros('text_embeds') };
    return { conditioning: { ...like, ...texts }, cutTokens: 0 };
  }

  const inputs = {
    conditioning: { encoder_hidden_states: [maxTokens, embeddingWidth], text_embeds: [pooledWidth], time_ids: [6] },
  };
  const [embedding2, pooled] = clip2.trialOutputs;
  const embeddings = [clip.trialOutputs[0]!, embedding2!];
  const trial = conditioningOf({ embeddings, maxTokens, pooled: pooled!, ...model.card.sizes.default });
  return loadPicturePipeline({ model, graphs, inputs, trial, readText, readNegative });
}

interface ConditioningOptions {
  /** Of both encoders: maxTokens × width each. */
  embeddings: readonly Float32Array[];
  maxTokens: number;
  pooled: Float32Array;
  /** Pixels. */
  width: number;
  height: number;
}

function conditioningOf({ embeddings, maxTokens, pooled, width, height }: ConditioningOptions): Conditioning {
  const joined = new Float32Array(embeddings.reduce((length, embedding) => length + embedding.length, 0));
  let offset = 0;
  for (let token = 0; token < maxTokens; token++) {
    for (const embedding of embeddings) {
      const side = embedding.length / maxTokens;
      joined.set(embedding.subarray(token * side, (token + 1) * side), offset);
      offset += side;
    }
  }
  // The size the picture was made from, its crop from the top and the left, and the size it is to have.
  const timeIds = Float32Array.of(height, width, 0, 0, height, width);
  return { encoder_hidden_states: joined, text_embeds: pooled, time_ids: timeIds };
}
