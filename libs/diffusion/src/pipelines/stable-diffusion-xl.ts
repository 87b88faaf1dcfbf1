/**
 * Stable Diffusion XL, including SDXL-Turbo: the concatenated second-to-last layers of two CLIP text encoders, the
 * pooled embedding of the second, and the image's sizes as time ids. Rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionXLPipeline.__call__`, `StableDiffusionXLImg2ImgPipeline` and
 * `StableDiffusionXLInpaintPipeline`, with a CPU generator and one seed per image.
 *
 * Known limits: both encoders read the same prompt; original and target size are the image's size, without crop; no
 * refiner, no watermark, no clip skip.
 */
import type { Conditioning, DenoiserInputs } from '../graphs/denoiser-batch.ts';
import { type EncoderOutputs, joinTokens, secondLastHiddenState } from '../graphs/prompt-encoder.ts';
import type { ImageRowInput } from '../image/image-request.ts';
import type { EncodedText } from '../image/image-row.ts';
import type { RequestLoras } from '../loras/lora-library.ts';
import { type ConditioningRequest, StableDiffusionPipeline } from './stable-diffusion.ts';

/** Runs four graphs. */
export class StableDiffusionXlPipeline extends StableDiffusionPipeline {
  protected override get encoderOutputs(): readonly EncoderOutputs[] {
    const { embeddingWidth, maxTokens, width2, pooledWidth } = this.#sizes;
    const { width = embeddingWidth - width2 } = this.model.textEncoders[0];
    return [
      { outputs: (graph) => [secondLastHiddenState(graph)], outputDims: () => [[1, maxTokens, width]] },
      {
        outputs: (graph) => [secondLastHiddenState(graph), 'text_embeds'],
        outputDims: () => [
          [1, maxTokens, width2],
          [1, pooledWidth],
        ],
      },
    ];
  }

  protected override get denoiserInputs(): DenoiserInputs {
    const { embeddingWidth, pooledWidth } = this.#sizes;
    return {
      conditioning: { encoder_hidden_states: ['open', embeddingWidth], text_embeds: [pooledWidth], time_ids: [6] },
    };
  }

  protected override conditioningOf(
    [embedding, embedding2, pooled]: readonly [Float32Array, Float32Array, Float32Array],
    { width, height }: ConditioningRequest,
  ): Conditioning {
    const joined = new Float32Array(embedding.length + embedding2.length);
    joinTokens([embedding, embedding2], { tokens: joined.length / this.#sizes.embeddingWidth, into: joined });
    // Original size, crop from the top and the left, and target size.
    const timeIds = Float32Array.of(height, width, 0, 0, height, width);
    return { encoder_hidden_states: joined, text_embeds: pooled, time_ids: timeIds };
  }

  /** Returns zeros for an empty negative prompt if the model was trained with them instead of its embeddings. */
  protected override async encodeNegativePrompt(request: ImageRowInput, prompt: EncodedText, loras?: RequestLoras) {
    if (!this.model.zeroesEmptyNegative || request.negativePrompt !== '')
      return super.encodeNegativePrompt(request, prompt, loras);
    const { embeddingWidth, maxTokens, pooledWidth } = this.#sizes;
    const embedding = new Float32Array(maxTokens * embeddingWidth);
    const zeros = { encoder_hidden_states: embedding, text_embeds: new Float32Array(pooledWidth) };
    return { conditioning: { ...prompt.conditioning, ...zeros }, cutTokens: 0 };
  }

  get #sizes() {
    const [{ tokenizer }, { pooledWidth = 0, width: width2 = 0 } = {}] = this.model.textEncoders;
    return { embeddingWidth: this.model.denoiser.embeddingWidth, maxTokens: tokenizer.maxTokens, pooledWidth, width2 };
  }
}
