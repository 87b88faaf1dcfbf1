/** What clients see of pictures: in polls, streams, webhooks and the list of models. */
import type { OutputInfo, OutputProgress, RequestStatus } from '@darkroom/core';
import { z } from 'zod';
import type { EventView, EventViewOptions, KindEvent, ResultViewOptions } from '../kind.ts';
import {
  type PictureAttachment,
  pictureAttachments,
  type PictureCard,
  type PictureInput,
  seedOfPicture,
} from './picture-input.ts';
import { pictureSchema } from './picture-schema.ts';
import { upscales } from './upscale.ts';

const count = z.int().min(0);
const pixels = z.int().min(1);
const range = z.strictObject({ min: z.number(), max: z.number() });

export const imageShape = {
  index: count,
  url: z.string().meta({ example: '/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0' }),
  seed: count,
  width: pixels,
  height: pixels,
  content_type: z.string().meta({ example: 'image/png' }),
  bytes: count,
  nsfw_content_detected: z.boolean().optional().meta({
    description:
      'What the safety checker of the model says of it; a picture it finds fault with is black. Absent where there is none.',
  }),
  b64_json: z.string().optional().meta({ description: 'The picture in base64, with `?images=inline`.' }),
};

const storedPrompt = z
  .string()
  .nullable()
  .meta({ description: 'Null when the request has ended on a server that does not keep prompts.' });

const storedPicture = z.string().nullable().optional();

const storedPictures = {
  image: storedPicture.meta({
    description:
      'Where the picture is that it began with, as it was fitted; left out where there was none, null when it is not kept.',
    example: '/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/inputs/image',
  }),
  mask: storedPicture.meta({ description: 'The same of its mask: white where it was painted anew.' }),
  strength: pictureSchema.shape.strength,
};

/** Of a request, beside `promptCutShape` and its images. */
export const pictureRequestShape = {
  step: count.meta({ description: 'Steps done, over all pictures of the request.' }),
  total_steps: count,
  progress: z.number().min(0).max(1),
  seed: count,
  seeds: z.array(count).meta({ description: 'One per picture.' }),
  parameters: pictureSchema
    .omit({
      output: true,
      priority: true,
      timeout_s: true,
      start_timeout_s: true,
      webhook_url: true,
      webhook_events: true,
    })
    .required()
    .extend({
      prompt: storedPrompt,
      negative_prompt: storedPrompt,
      ...storedPictures,
      loras: pictureSchema.shape.loras,
      metadata: pictureSchema.shape.metadata,
      upscale: pictureSchema.shape.upscale,
    })
    .meta({ description: 'All that made the pictures, as a body that makes the same ones again.' }),
};

export const promptCutShape = {
  prompt_tokens_cut: count.nullable().meta({
    description:
      "Tokens at the prompt's end that the model did not read, because it reads no more; of several text encoders " +
      'the one that reads the furthest counts. null before the first picture is done.',
  }),
  negative_prompt_tokens_cut: count
    .nullable()
    .meta({ description: 'The same of the negative prompt; 0 where guidance makes no use of it.' }),
};

/** Of a model. */
export const pictureModelShape = {
  sizes: z.strictObject({ multiple: pixels, min: pixels, max: pixels }),
  steps: range,
  guidance: range,
  schedulers: z.array(z.string()).meta({ description: 'What `scheduler` takes.' }),
  max_prompt_tokens: count,
  takes: z
    .array(z.enum(pictureAttachments))
    .optional()
    .meta({ description: 'Pictures that requests may bring; left out where there are none.' }),
  upscales: z
    .array(z.literal(upscales))
    .meta({ description: 'What `upscale` takes; empty where the model has no upscaler.' }),
  safety_checker: z.enum(['black', 'refuse']).nullable().meta({
    description:
      'What becomes of a picture that the safety checker of the model finds fault with: it is black, or the request fails. null: there is none.',
  }),
  loras: z
    .array(z.strictObject({ id: z.string(), rank: count }))
    .optional()
    .meta({ description: 'Adapters that `loras` takes, with their ranks; absent where there are none.' }),
  defaults: z.strictObject({
    size: z.string(),
    num_inference_steps: count,
    guidance_scale: z.number(),
    scheduler: z.string(),
  }),
};

type View<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape>>;

type ImageView = View<typeof imageShape>;

/** Without prompts after the end, where they are not kept. */
export type StoredPictureInput = Omit<PictureInput, 'prompt' | 'negativePrompt'> & Partial<PictureInput>;

/** A path: only the client knows under which name it reaches the API. `signLinks` makes a link of it that needs no key. */
export function imageUrl(id: string, index: number): string {
  return `/v1/predict/${id}/images/${index}`;
}

/** Of what a request began with: a path, too. */
export function inputUrl(id: string, name: PictureAttachment): string {
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

/** How much of a request's texts was not read, which a picture of it tells; null before there is one. */
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

/** `progress`: 0 to 1. */
function progressView({ index, done, total = 0 }: OutputProgress) {
  return { index, step: done, total_steps: total, progress: total > 0 ? done / total : 0 };
}

function eventView(id: string, event: KindEvent, options: EventViewOptions = {}): EventView {
  switch (event.type) {
    case 'progress':
      return { name: 'progress', data: progressView(event) };
    case 'preview': {
      const { contentType, data } = event;
      // A data URL goes straight into an <img>. Without its bytes, which go at the end, a preview is progress.
      const preview = data === undefined ? {} : { preview: `data:${contentType};base64,${base64Of(data)}` };
      return { name: 'progress', data: { ...progressView(event), ...preview } };
    }
    case 'output':
      return { name: 'image', data: chunkView(id, event, options) };
    case 'delta':
    case 'snapshot':
    case 'reset':
      // Pictures have no text.
      return { name: event.type, data: {} };
  }
}

/** Chunks end at multiples of three bytes, so their base64 can be joined as it is. */
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

function requestView(request: RequestStatus): View<typeof pictureRequestShape> {
  const { id, model, state, done, total } = request;
  const input = request.input as StoredPictureInput;
  return {
    step: done,
    total_steps: total,
    progress: state === 'succeeded' ? 1 : total > 0 ? done / total : 0,
    seed: input.seed,
    seeds: Array.from({ length: input.n }, (_value, index) => seedOfPicture(input.seed, index)),
    parameters: parametersOf(id, model, input),
  };
}

/** Everything that made the pictures, as a body that makes the same ones again. */
function parametersOf(
  id: string,
  model: string,
  input: StoredPictureInput,
): View<typeof pictureRequestShape>['parameters'] {
  // Pictures go when prompts go.
  const urlOf = (name: PictureAttachment): string | null => (input.prompt === undefined ? null : inputUrl(id, name));
  return {
    model,
    prompt: input.prompt ?? null,
    negative_prompt: input.negativePrompt ?? null,
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
    ...(input.image ? { image: urlOf('image'), strength: input.strength } : {}),
    ...(input.mask ? { mask: urlOf('mask') } : {}),
    ...(input.loras && { loras: input.loras.map(({ id, scale }) => ({ id, scale })) }),
    ...(input.metadata && { metadata: true }),
    ...(input.upscale !== undefined && { upscale: input.upscale }),
  };
}

function modelView(card: PictureCard): View<typeof pictureModelShape> {
  const { sizes, steps, guidance } = card;
  return {
    sizes: { multiple: sizes.multiple, min: sizes.min, max: sizes.max },
    steps: { min: steps.min, max: steps.max },
    guidance: { min: guidance.min, max: guidance.max },
    schedulers: [...card.schedulers],
    max_prompt_tokens: card.maxPromptTokens,
    ...(card.takes === undefined || card.takes.length === 0 ? {} : { takes: [...card.takes] }),
    upscales: [...(card.upscales ?? [])],
    safety_checker: card.safetyChecker ?? null,
    ...(card.loras && { loras: card.loras.map(({ id, rank }) => ({ id, rank })) }),
    defaults: {
      size: `${sizes.default.width}x${sizes.default.height}`,
      num_inference_steps: steps.default,
      guidance_scale: guidance.default,
      scheduler: card.defaultScheduler,
    },
  };
}

/** Without a copy. */
export function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/** What a kind has to show. */
export const pictureViews = { modelView, requestView, resultView, progressView, eventView };
