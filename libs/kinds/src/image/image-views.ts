/** Views of image requests for polls, streams, webhooks and the list of models. */
import type { OutputInfo, OutputProgress, RequestSnapshot } from '@darkroom/core';
import { z } from 'zod';
import type { EventView, EventViewOptions, KindEvent, ResultViewOptions } from '../request/kind.ts';
import { type ImageAttachment, type ImageInput, seedOfImage } from './image-input.ts';
import { modelView } from './image-model-view.ts';
import { embedField, imageRequestSchema } from './image-request-schema.ts';

const count = z.int().min(0);
const pixels = z.int().min(1);

export const imageShape = {
  index: count,
  url: z.string().meta({ example: '/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0' }),
  seed: count,
  width: pixels,
  height: pixels,
  content_type: z.string().meta({ example: 'image/png' }),
  bytes: count,
  nsfw_content_detected: z.boolean().optional().meta({
    description: 'Result of the model’s safety checker; a flagged image is black. Absent if the model has no checker.',
  }),
  b64_json: z.string().optional().meta({ description: 'The image in base64, with `?images=inline`.' }),
};

const storedPrompt = z
  .string()
  .nullable()
  .meta({ description: 'Null once the request has ended, if the server does not retain prompts.' });

const storedImage = z.string().nullable().optional();

const storedImages = {
  image: storedImage.meta({
    description: 'URL of the input image, scaled and cropped; absent without one, null if it is no longer stored.',
    example: '/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/inputs/image',
  }),
  mask: storedImage.meta({ description: 'URL of the mask, likewise: white where the image was repainted.' }),
  strength: imageRequestSchema.shape.strength,
};

/** Fields of a request in addition to `promptCutShape` and its images. */
export const imageRequestShape = {
  step: count.meta({ description: 'Steps done, over all images of the request.' }),
  total_steps: count,
  progress: z.number().min(0).max(1),
  seed: count,
  seeds: z.array(count).meta({ description: 'One per image.' }),
  parameters: imageRequestSchema
    .omit({
      output: true,
      priority: true,
      timeout_s: true,
      start_timeout_s: true,
      webhook_url: true,
      webhook_events: true,
      user: true,
    })
    .required()
    .extend({
      prompt: storedPrompt,
      negative_prompt: storedPrompt,
      ...storedImages,
      prompt_syntax: imageRequestSchema.shape.prompt_syntax,
      loras: imageRequestSchema.shape.loras,
      metadata: embedField.optional(),
      upscale: imageRequestSchema.shape.upscale,
    })
    .meta({ description: 'A body that reproduces the same images.' }),
};

export const promptCutShape = {
  prompt_tokens_cut: count.nullable().meta({
    description:
      "Number of tokens cut from the prompt's end because they exceed the model's limit; with several text encoders, " +
      'the smallest number counts. null before the first image is done.',
  }),
  negative_prompt_tokens_cut: count
    .nullable()
    .meta({ description: 'The same for the negative prompt; 0 if guidance does not use it.' }),
};

type View<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape>>;

type ImageView = View<typeof imageShape>;

/** A stored image input. Prompts are absent after the end if they are not retained. */
export type StoredImageInput = Omit<ImageInput, 'prompt' | 'negativePrompt'> & Partial<ImageInput>;

/** Returns the path of an image; views convert it to a URL. `signLinks` makes a link that needs no API key. */
export function imageUrl(id: string, index: number): string {
  return `/v1/predict/${id}/images/${index}`;
}

/** Returns the path of an input file. */
export function inputUrl(id: string, name: ImageAttachment): string {
  return `/v1/predict/${id}/inputs/${name}`;
}

function imageView(
  id: string,
  output: OutputInfo,
  { linkOf = (path) => path }: Pick<ResultViewOptions, 'linkOf'>,
): ImageView {
  return {
    index: output.index,
    url: linkOf(imageUrl(id, output.index)),
    seed: Number(output['seed']),
    width: Number(output['width']),
    height: Number(output['height']),
    content_type: output.contentType,
    bytes: output.bytes,
    ...(typeof output['nsfw'] === 'boolean' && { nsfw_content_detected: output['nsfw'] }),
  };
}

/** Returns how many tokens of the prompts were cut, which is stored with each image; null before the first image. */
export function promptCutView([output]: readonly OutputInfo[]): View<typeof promptCutShape> {
  const read = (fact: string): number | null => (output === undefined ? null : Number(output[fact] ?? 0));
  return {
    prompt_tokens_cut: read('promptTokensCut'),
    negative_prompt_tokens_cut: read('negativePromptTokensCut'),
  };
}

function resultView(
  id: string,
  outputs: readonly OutputInfo[],
  { inlined, ...links }: ResultViewOptions = {},
): View<typeof promptCutShape> & { images: ImageView[] } {
  const images = outputs.map((output) => {
    const data = inlined?.get(output.index);
    return { ...imageView(id, output, links), ...(data === undefined ? {} : { b64_json: base64Of(data) }) };
  });
  return { ...promptCutView(outputs), images };
}

/** Returns the progress; the field `progress` is 0 to 1. */
function progressView({ index, done, total = 0 }: OutputProgress) {
  return { index, step: done, total_steps: total, progress: total > 0 ? done / total : 0 };
}

function eventView(id: string, event: KindEvent, options: EventViewOptions = {}): EventView {
  switch (event.type) {
    case 'progress':
      return { name: 'progress', data: progressView(event) };
    case 'preview': {
      const { contentType, data } = event;
      // A preview is a data URL for an <img>. After the end its bytes are deleted and it is shown as progress.
      const preview = data === undefined ? {} : { preview: `data:${contentType};base64,${base64Of(data)}` };
      return { name: 'progress', data: { ...progressView(event), ...preview } };
    }
    case 'output':
      return { name: 'image', data: chunkView(id, event, options) };
    case 'delta':
    case 'snapshot':
    case 'reset':
      // Image requests never have text events.
      return { name: event.type, data: {} };
  }
}

/** Returns a chunk. Chunks end at multiples of three bytes, so their base64 can be concatenated. */
function chunkView(
  id: string,
  { output, chunkIndex }: Extract<KindEvent, { type: 'output' }>,
  { chunk, ...links }: EventViewOptions,
) {
  return {
    ...imageView(id, output, links),
    chunk_id: `${id}-${output.index}-${chunkIndex}`,
    chunk_index: chunkIndex,
    total_chunks: output.chunks,
    is_chunked: output.chunks > 1,
    is_final: chunkIndex === output.chunks - 1,
    b64: base64Of(chunk!),
  };
}

function requestView(
  request: RequestSnapshot,
  _texts: readonly string[] = [],
  { urlOf }: Pick<ResultViewOptions, 'urlOf'> = {},
): View<typeof imageRequestShape> {
  const { id, model, state, done, total } = request;
  const input = request.input as StoredImageInput;
  return {
    step: done,
    total_steps: total,
    progress: state === 'succeeded' ? 1 : total > 0 ? done / total : 0,
    seed: input.seed,
    seeds: Array.from({ length: input.n }, (_value, index) => seedOfImage(input.seed, index)),
    parameters: parametersOf({ id, model, urlOf }, input),
  };
}

/** Returns a body that reproduces the same images. */
function parametersOf(
  { id, model, urlOf = (path) => path }: Pick<RequestSnapshot, 'id' | 'model'> & Pick<ResultViewOptions, 'urlOf'>,
  input: StoredImageInput,
): View<typeof imageRequestShape>['parameters'] {
  // Input images are deleted together with prompts.
  const urlOfInput = (name: ImageAttachment): string | null =>
    input.prompt === undefined ? null : urlOf(inputUrl(id, name));
  return {
    model,
    prompt: input.prompt ?? null,
    negative_prompt: input.negativePrompt ?? null,
    ...(input.promptSyntax && { prompt_syntax: input.promptSyntax }),
    size: `${input.width}x${input.height}`,
    n: input.n,
    num_inference_steps: input.numInferenceSteps,
    guidance_scale: input.guidanceScale,
    guidance_rescale: input.guidanceRescale,
    seed: input.seed,
    scheduler: input.scheduler,
    output_format: input.outputFormat,
    output_compression: input.outputCompression,
    preview: input.previewEvery === 0 ? 'off' : { every: input.previewEvery },
    ...(input.image ? { image: urlOfInput('image'), strength: input.strength } : {}),
    ...(input.mask ? { mask: urlOfInput('mask') } : {}),
    ...(input.loras && { loras: input.loras.map(({ id, scale }) => ({ id, scale })) }),
    ...(input.metadata && { metadata: true }),
    ...(input.upscale !== undefined && { upscale: input.upscale }),
  };
}

/** Encodes bytes in base64 without copying them first. */
export function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/** Views of the image kind. */
export const imageViews = { modelView, requestView, resultView, progressView, eventView };
