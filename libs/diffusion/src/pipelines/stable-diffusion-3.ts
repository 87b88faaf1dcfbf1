/**
 * Stable Diffusion 3 and 3.5, including Turbo: two CLIP text encoders and an optional T5, a transformer trained with
 * flow matching, and a VAE. Rows of one size share the transformer call of a step.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers"; diffusers `StableDiffusion3Pipeline.__call__`,
 * `StableDiffusion3Img2ImgPipeline` and `StableDiffusion3InpaintPipeline`, with a CPU generator and one seed per
 * image.
 *
 * Known difference: `StableDiffusion3InpaintPipeline` of diffusers 0.42 decodes without the VAE's shift, by mistake
 * (its issue 13611); here latents are decoded as by the other pipelines.
 *
 * Known limits: all encoders read the same prompt, T5 its first 256 tokens; no skip layer guidance, no IP adapter, no
 * clip skip, no inpainting transformers.
 */
import type { NonEmpty } from '@darkroom/core';
import { modelFileError } from '@darkroom/runtime/model-file';
import type { Conditioning, DenoiserInputs } from '../graphs/denoiser-batch.ts';
import { type EncoderOutputs, joinTokens, lastHiddenState, secondLastHiddenState } from '../graphs/prompt-encoder.ts';
import type { ImageRowInput } from '../image/image-request.ts';
import type { LoadedGraph } from '../onnx/load-graph.ts';
import type { SchedulerConfig } from '../schedulers/config/scheduler-config.ts';
import { type ImageSchedule, StableDiffusionPipeline } from './stable-diffusion.ts';

/** T5's tokens per prompt. Without T5, zeros take their place. */
const T5_TOKENS = 256;

/** Runs five graphs, or four without T5. */
export class StableDiffusion3Pipeline extends StableDiffusionPipeline {
  protected override get encoderOutputs(): readonly EncoderOutputs[] {
    const [clips, t5] = [this.model.textEncoders.slice(0, 2), this.model.textEncoders.slice(2)];
    return [
      // The second-to-last layer, and the projection of the complete prompt.
      ...clips.map(({ tokenizer, width = 0, pooledWidth = 0 }): EncoderOutputs => ({
        outputs: secondLastAndProjection,
        outputDims: () => [
          [1, tokenizer.maxTokens, width],
          [1, pooledWidth],
        ],
      })),
      // The last layer. It also attends to the padding: the original passes no mask.
      ...t5.map((): EncoderOutputs => ({
        outputs: ({ session }) => [lastHiddenState(session)],
        outputDims: () => [[1, T5_TOKENS, this.model.denoiser.embeddingWidth]],
      })),
    ];
  }

  protected override get denoiserInputs(): DenoiserInputs {
    const { denoiser, textEncoders } = this.model;
    const pooledWidth = textEncoders.slice(0, 2).reduce((sum, { pooledWidth: width = 0 }) => sum + width, 0);
    return {
      sample: 'hidden_states',
      conditioning: {
        encoder_hidden_states: [textEncoders[0].tokenizer.maxTokens + T5_TOKENS, denoiser.embeddingWidth],
        pooled_projections: [pooledWidth],
      },
    };
  }

  /**
   * Concatenates both CLIPs' embeddings per token and pads them with zeros to T5's width; T5's tokens follow.
   * Concatenates the pooled projections, too.
   */
  protected override conditioningOf([embedding, pooled, embedding2, pooled2, embedding3]: readonly [
    Float32Array,
    Float32Array,
    Float32Array,
    Float32Array,
    ...Float32Array[],
  ]): Conditioning {
    const { embeddingWidth: width } = this.model.denoiser;
    const { maxTokens: tokens } = this.model.textEncoders[0].tokenizer;
    const joined = new Float32Array((tokens + T5_TOKENS) * width);
    joinTokens([embedding, embedding2], { tokens, into: joined, width });
    if (embedding3 !== undefined) joined.set(embedding3, tokens * width);
    return { encoder_hidden_states: joined, pooled_projections: Float32Array.of(...pooled, ...pooled2) };
  }

  /**
   * Returns the schedule's shift, which depends on the image's number of patches for some models. With an input image,
   * rounds the share of steps up, unlike the UNet pipelines.
   */
  protected override scheduleOf({ numInferenceSteps: steps, strength, width, height }: ImageRowInput): ImageSchedule {
    const { scheduler, latents, denoiser } = this.model;
    const patch = latents.factor * denoiser.multiple;
    const dynamicShift = interpolatedShift(scheduler.config, (width / patch) * (height / patch));
    return {
      ...(scheduler.config.useDynamicShifting && { dynamicShift }),
      ...(strength !== undefined && { skippedSteps: Math.min(Math.floor(steps - steps * strength), steps - 1) }),
    };
  }
}

function secondLastAndProjection(graph: LoadedGraph): NonEmpty<string> {
  const { file, session } = graph;
  const pooled = 'text_embeds';
  if (session.outputs.some(({ name }) => name === pooled)) return [secondLastHiddenState(graph), pooled];
  throw modelFileError(file, `has no output ${pooled}; exports of CLIPTextModelWithProjection have it`);
}

/**
 * Returns the shift for a size by linear interpolation between two sizes (`calculate_shift` of diffusers'
 * `StableDiffusion3Pipeline` and Flux).
 *
 * @param imageSeqLen number of the transformer's image patches.
 */
export function interpolatedShift(config: SchedulerConfig, imageSeqLen: number): number {
  const { baseShift, maxShift, baseImageSeqLen, maxImageSeqLen } = config;
  const slope = (maxShift - baseShift) / (maxImageSeqLen - baseImageSeqLen);
  return imageSeqLen * slope + (baseShift - slope * baseImageSeqLen);
}
