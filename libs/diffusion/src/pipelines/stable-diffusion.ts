/**
 * Stable Diffusion 1.x and 2.x: a CLIP text encoder, a UNet with classifier-free guidance, and a VAE. Each row has its own
 * prompt, steps, guidance, scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionPipeline.__call__` with a CPU generator and one seed a picture.
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
import type { ReadText } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs, tryTextEncoder } from '../graphs/try-picture-graphs.ts';

/**
 * Loads the model's three graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusion(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card, latents: facts } = model;
  const { embeddingWidth } = model.denoiser;
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
  const batch = new DenoiserBatch(unet, { conditioning: { encoder_hidden_states: embeddingShape } });
  const conditioning = { encoder_hidden_states: embedding! };
  await tryPictureGraphs({ model, denoiser: unet, batch, vaeDecoder, conditioning });

  async function encode(text: string): Promise<ReadText> {
    const { outputs, cutTokens } = await promptEncoder.encode(text);
    return { conditioning: { encoder_hidden_states: outputs[0]! }, cutTokens };
  }

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const conditional = await encode(request.prompt);
      const unconditional = request.guidanceScale > 1 ? await encode(request.negativePrompt) : undefined;
      return createPictureRows({ model, rowRequest, request, conditional, unconditional });
    },

    step: (rows) => denoise(rows, batch),
    preview: (row) => previewPicture(row, model.preview),
    finish: (row) => decodePicture(row, { vaeDecoder, facts }),
    checkpoint: checkpointPictureRow,

    settle: () => graphs.settle(),
    dispose: () => graphs.dispose(),
  };
}
