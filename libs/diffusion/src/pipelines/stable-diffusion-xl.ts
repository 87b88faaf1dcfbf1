/**
 * Stable Diffusion XL, SDXL-Turbo included: two CLIP text encoders whose second last layers are read side by side, the
 * pooled embedding of the second, and the sizes of the picture as time ids. Each row has its own prompt, steps, guidance,
 * scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionXLPipeline.__call__` with a CPU generator and one seed a picture.
 *
 * Known limits: both encoders read the same prompt; the original and the target size are that of the picture, nothing is
 * cropped; no refiner, no watermark, no clip skip, no image input.
 */
import type { ModelDirectory } from '../model/model-directory.ts';
import type { Pipeline } from '../pipeline.ts';
import { decodePicture, previewPicture } from '../picture/decode-picture.ts';
import { denoise } from '../picture/denoise.ts';
import { DenoiserBatch } from '../graphs/denoiser-batch.ts';
import type { Conditioning } from '../graphs/denoiser-batch.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';
import { ModelGraphs } from '../graphs/model-graphs.ts';
import { checkPictureRequest } from '../picture/picture-request.ts';
import type { PictureRequest } from '../picture/picture-request.ts';
import { checkpointPictureRow, createPictureRows } from '../picture/picture-row.ts';
import type { PictureRow } from '../picture/picture-row.ts';
import { createPromptEncoder, secondLastHiddenState, tokensCutByAll } from '../graphs/prompt-encoder.ts';
import type { ReadText } from '../graphs/prompt-encoder.ts';
import { tryPictureGraphs, tryTextEncoder } from '../graphs/try-picture-graphs.ts';

/**
 * Loads the model's four graphs and calls each of them once.
 *
 * @throws DarkroomError naming the file, if one cannot be loaded or does not fit the others.
 */
export async function loadStableDiffusionXl(
  model: ModelDirectory,
  options: LoadPipelineOptions = {},
): Promise<Pipeline<PictureRow>> {
  const { card, latents: facts, zeroesEmptyNegative } = model;
  const { embeddingWidth } = model.denoiser;
  const [first, second] = [model.textEncoders[0]!, model.textEncoders[1]!];
  const { maxTokens } = first.tokenizer;
  const { pooledWidth = 0, width: width2 = 0 } = second;
  const { width = embeddingWidth - width2 } = first;
  const graphs = new ModelGraphs(model, options);
  const textEncoder = await graphs.loadTextEncoder(0);
  const textEncoder2 = await graphs.loadTextEncoder(1);
  const promptEncoder = createPromptEncoder({
    tokenizer: first.tokenizer,
    session: textEncoder.session,
    outputs: [secondLastHiddenState(textEncoder)],
  });
  const promptEncoder2 = createPromptEncoder({
    tokenizer: second.tokenizer,
    session: textEncoder2.session,
    outputs: [secondLastHiddenState(textEncoder2), 'text_embeds'],
  });

  async function encode(text: string, request: Pick<PictureRequest, 'width' | 'height'>): Promise<ReadText> {
    const encoded = [await promptEncoder.encode(text), await promptEncoder2.encode(text)] as const;
    const [[embedding], [embedding2, pooled]] = [encoded[0].outputs, encoded[1].outputs];
    const embeddings = [embedding!, embedding2!];
    const conditioning = conditioningOf({ embeddings, maxTokens, pooled: pooled!, ...request });
    return { conditioning, cutTokens: tokensCutByAll(encoded) };
  }

  async function encodeNegative({ negativePrompt, ...request }: PictureRequest, like: Conditioning): Promise<ReadText> {
    if (negativePrompt !== '' || !zeroesEmptyNegative) return encode(negativePrompt, request);
    // Such models were trained with zeros in place of the embeddings of no text.
    const zeros = (input: string): Float32Array => new Float32Array(like[input]!.length);
    const texts = { encoder_hidden_states: zeros('encoder_hidden_states'), text_embeds: zeros('text_embeds') };
    return { conditioning: { ...like, ...texts }, cutTokens: 0 };
  }

  const [embedding] = await tryTextEncoder({
    file: textEncoder.file,
    promptEncoder,
    tokenizer: first.tokenizer,
    gives: [[1, maxTokens, width]],
  });
  const [embedding2, pooled] = await tryTextEncoder({
    file: textEncoder2.file,
    promptEncoder: promptEncoder2,
    tokenizer: second.tokenizer,
    gives: [
      [1, maxTokens, width2],
      [1, pooledWidth],
    ],
  });
  await graphs.settle();
  const unet = await graphs.loadDenoiser();
  const vaeDecoder = await graphs.loadVaeDecoder();
  const batch = new DenoiserBatch(unet, {
    conditioning: {
      encoder_hidden_states: [maxTokens, embeddingWidth],
      text_embeds: [pooledWidth],
      time_ids: [6],
    },
  });
  const embeddings = [embedding!, embedding2!];
  const conditioning = conditioningOf({ embeddings, maxTokens, pooled: pooled!, ...card.sizes.default });
  await tryPictureGraphs({ model, denoiser: unet, batch, vaeDecoder, conditioning });

  return {
    card,
    components: await graphs.describe(),

    async createRows(rowRequest) {
      const request = checkPictureRequest(rowRequest.input, card);
      const conditional = await encode(request.prompt, request);
      const unconditional =
        request.guidanceScale > 1 ? await encodeNegative(request, conditional.conditioning) : undefined;
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
