/**
 * Stable Diffusion 3 and 3.5, Turbo included: two CLIP text encoders and a T5 that a model may come without, a transformer
 * that is trained with flow matching, and a VAE. Each row has its own prompt, steps, guidance, scheduler and seed; rows of
 * one size share the transformer call of a step.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers"; diffusers `StableDiffusion3Pipeline.__call__`, and those
 * of `StableDiffusion3Img2ImgPipeline` and `StableDiffusion3InpaintPipeline`, with a CPU generator and one seed a picture.
 *
 * Known difference: `StableDiffusion3InpaintPipeline` of diffusers 0.42 decodes without the VAE's shift, a mistake of its own
 * (its issue 13611); here latents are decoded as by the other pipelines.
 *
 * Known limits: all encoders read the same prompt, T5 the first 256 tokens of it; no skip layer guidance, no IP adapter, no
 * clip skip, no transformers that were made for inpainting.
 */
import type { LoadedGraph } from '../graphs/load-graph.ts';
import { joinTokens, lastHiddenState, secondLastHiddenState } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import type { PictureFamily } from '../picture/picture-pipeline.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import type { PictureSchedule } from '../picture/picture-row.ts';
import { interpolatedShift } from '../schedulers/schedule/flow-shift.ts';

/** Tokens that T5 gives of each text. Where there is no T5, as many of zeros take their place. */
const T5_TOKENS = 256;

/** Of five graphs, or without T5 four. */
export function stableDiffusion3(model: ModelDirectory): PictureFamily {
  const { embeddingWidth: width } = model.denoiser;
  const [clips, t5] = [model.textEncoders.slice(0, 2), model.textEncoders.slice(2)];
  const { maxTokens } = clips[0]!.tokenizer;
  return {
    encoders: [
      // The layer before the last, and the projection of the whole text.
      ...clips.map(({ tokenizer, width: clipWidth = 0, pooledWidth = 0 }) => ({
        outputs: secondLastAndProjection,
        gives: () => [
          [1, tokenizer.maxTokens, clipWidth],
          [1, pooledWidth],
        ],
      })),
      // The last layer. It reads the padding, too: the original gives it no mask.
      ...t5.map(() => ({
        outputs: ({ session }: LoadedGraph) => [lastHiddenState(session)],
        gives: () => [[1, T5_TOKENS, width]],
      })),
    ],
    inputs: {
      sample: 'hidden_states',
      conditioning: {
        encoder_hidden_states: [maxTokens + T5_TOKENS, width],
        pooled_projections: [clips.reduce((sum, { pooledWidth = 0 }) => sum + pooledWidth, 0)],
      },
    },
    // Tokens of both CLIPs side by side, filled up with zeros, then those of T5; and what the CLIPs give for the whole text.
    conditioningOf([embedding, pooled, embedding2, pooled2, embedding3]) {
      const joined = new Float32Array((maxTokens + T5_TOKENS) * width);
      joinTokens([embedding!, embedding2!], { tokens: maxTokens, into: joined, width });
      if (embedding3 !== undefined) joined.set(embedding3, maxTokens * width);
      return { encoder_hidden_states: joined, pooled_projections: Float32Array.of(...pooled!, ...pooled2!) };
    },
    scheduleOf: (request) => shiftFor(model, request),
    shorten: skipSteps,
  };
}

/** Unlike pipelines of UNets, it takes the step that is left in part. */
function skipSteps({ numInferenceSteps: steps }: PictureRequest, strength: number): PictureSchedule {
  return { skippedSteps: Math.min(Math.floor(steps - steps * strength), steps - 1) };
}

function secondLastAndProjection(graph: LoadedGraph): string[] {
  const { file, session } = graph;
  const pooled = 'text_embeds';
  if (session.outputs.some(({ name }) => name === pooled)) return [secondLastHiddenState(graph), pooled];
  throw modelFileError(file, `has no output ${pooled}, as exports of CLIPTextModelWithProjection have`);
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
