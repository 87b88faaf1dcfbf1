/**
 * Latent consistency models: Stable Diffusion distilled to a few steps. The UNet is told the guidance, so that one row of
 * its batch is enough for a picture; negative prompts and guidance rescale are without effect.
 * Source: Luo et al. 2023, "Latent Consistency Models"; diffusers `LatentConsistencyModelPipeline.__call__`.
 *
 * Known limits: no safety checker, no clip skip, no image input.
 */
import type { ModelDirectory } from '../model/model-directory.ts';
import type { Pipeline } from '../pipeline.ts';
import { decodePicture, previewPicture } from '../picture/decode-picture.ts';
import { denoise } from '../picture/denoise.ts';
import { DenoiserBatch } from '../graphs/denoiser-batch.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { checkPictureRequest } from '../picture/picture-request.ts';
import { checkpointPictureRow, createPictureRows } from '../picture/picture-row.ts';
import type { PictureRow } from '../picture/picture-row.ts';
import { createPromptEncoder, lastHiddenState } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs, tryTextEncoder } from '../graphs/try-picture-graphs.ts';

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadLatentConsistency(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card, latents: facts, denoiser } = model;
  const { embeddingWidth, guidanceWidth = 0 } = denoiser;
  const { tokenizer } = model.textEncoders[0]!;
  const graphs = new ModelGraphs(model, options);
  const textEncoder = await graphs.loadTextEncoder(0);
  const outputs = [lastHiddenState(textEncoder.session)];
  const promptEncoder = createPromptEncoder({ tokenizer, session: textEncoder.session, outputs });
  const embeddingShape = [tokenizer.maxTokens, embeddingWidth] as const;
  const gives = [[1, ...embeddingShape]];
  const [embedding] = await tryTextEncoder({ file: textEncoder.file, promptEncoder, tokenizer, gives });
  await graphs.settle();
  const unet = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const batch = new DenoiserBatch(unet, {
    conditioning: { encoder_hidden_states: embeddingShape, timestep_cond: [guidanceWidth] },
  });
  const conditioning = { encoder_hidden_states: embedding!, timestep_cond: embedGuidance(1, guidanceWidth) };
  await tryPictureGraphs({ model, denoiser: unet, batch, vaeDecoder, conditioning });

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const { outputs, cutTokens } = await promptEncoder.encode(request.prompt);
      const guidance = embedGuidance(request.guidanceScale, guidanceWidth);
      const conditioning = { encoder_hidden_states: outputs[0]!, timestep_cond: guidance };
      const conditional = { conditioning, cutTokens };
      return createPictureRows({ model, rowRequest, request, conditional, unconditional: undefined });
    },

    step: (rows) => denoise(rows, batch),
    preview: (row) => previewPicture(row, model.preview),
    finish: (row) => decodePicture(row, { vaeDecoder, facts }),
    checkpoint: checkpointPictureRow,

    settle: () => graphs.settle(),
    dispose: () => graphs.dispose(),
  };
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
