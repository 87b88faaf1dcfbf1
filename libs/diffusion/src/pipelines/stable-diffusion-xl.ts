/**
 * Stable Diffusion XL, SDXL-Turbo included: two CLIP text encoders whose second last layers are read side by side, the
 * pooled embedding of the second, and the sizes of the picture as time ids. Each row has its own prompt, steps, guidance,
 * scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionXLPipeline.__call__`, and those of `StableDiffusionXLImg2ImgPipeline` and
 * `StableDiffusionXLInpaintPipeline`, with a CPU generator and one seed a picture.
 *
 * Known limits: both encoders read the same prompt; the original and the target size are that of the picture, nothing is
 * cropped; no refiner, no watermark, no clip skip.
 */
import { joinTokens, secondLastHiddenState } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { PictureFamily } from '../picture/picture-pipeline.ts';

/** Of four graphs. */
export function stableDiffusionXl(model: ModelDirectory): PictureFamily {
  const { embeddingWidth } = model.denoiser;
  const [first, second] = [model.textEncoders[0]!, model.textEncoders[1]!];
  const { maxTokens } = first.tokenizer;
  const { pooledWidth = 0, width: width2 = 0 } = second;
  const { width = embeddingWidth - width2 } = first;
  return {
    encoders: [
      { outputs: (graph) => [secondLastHiddenState(graph)], gives: () => [[1, maxTokens, width]] },
      {
        outputs: (graph) => [secondLastHiddenState(graph), 'text_embeds'],
        gives: () => [
          [1, maxTokens, width2],
          [1, pooledWidth],
        ],
      },
    ],
    inputs: {
      conditioning: { encoder_hidden_states: [maxTokens, embeddingWidth], text_embeds: [pooledWidth], time_ids: [6] },
    },
    conditioningOf([embedding, embedding2, pooled], { width, height }) {
      const joined = new Float32Array(embedding!.length + embedding2!.length);
      joinTokens([embedding!, embedding2!], { tokens: maxTokens, into: joined });
      // The size the picture was made from, its crop from the top and the left, and the size it is to have.
      const timeIds = Float32Array.of(height, width, 0, 0, height, width);
      return { encoder_hidden_states: joined, text_embeds: pooled!, time_ids: timeIds };
    },
    // Such models were trained with zeros in place of the embeddings of no text.
    ...(model.zeroesEmptyNegative && { zeroesEmptyNegative: ['encoder_hidden_states', 'text_embeds'] }),
  };
}
