/** Images over `/v1/images/generations`, as in OpenAI's API reference, with Darkroom's additional fields. */
import type { RowEvent, RowOutput } from '@darkroom/core';
import { type ImageInput, imageTypeOf, seedOfImage } from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import { unavailable, UpstreamError } from '../calls/backend-error.ts';
import { errorIn, streamFailure } from './http/upstream-error.ts';
import type { UpstreamHttp } from './http/upstream-http.ts';
import type { UpstreamCall } from './upstream-protocol.ts';

/** Max size of an event: 16 million pixels of noise as PNG, in base64. */
const maxEventBytes = 64 * 1024 * 1024;
const maxPartialImages = 3;
/** Codes of OpenAI's and FastAPI's errors about a field that there is not. */
const unknownFieldTypes = ['unknown_parameter', 'unsupported_parameter', 'extra_forbidden'];

/** Features that a server supports besides the prompt. */
export interface ImageDialect {
  /** Accepts seed, steps, guidance and Darkroom's other fields. */
  hasDarkroomFields: boolean;
  /** Further fields that the server takes, of `optionFields`. */
  fields: ReadonlySet<string>;
  /** Streams partial images. Servers that do not choose the response format by another field. */
  hasStream: boolean;
}

/** Fields of vLLM-omni and SGLang beyond OpenAI's. */
export const optionFields = ['negative_prompt', 'seed', 'num_inference_steps', 'guidance_scale'] as const;

interface ImageCall {
  model: string;
  input: ImageInput;
  index: number;
  dialect: ImageDialect;
  attachments?: UpstreamCall['attachments'];
  /** Collects the fields that the server rejects; the model is described again without them. */
  rejected: Set<string>;
}

export async function* runOpenaiImage(
  http: UpstreamHttp,
  call: ImageCall,
  signal: AbortSignal,
): AsyncGenerator<CallEvent, RowOutput, void> {
  const { input, index } = call;
  const image = call.attachments?.get('image');
  const path = image === undefined ? '/v1/images/generations' : '/v1/images/edits';
  const secrets = [input.prompt, input.negativePrompt];
  const body = image === undefined ? bodyOf(call) : formOf(bodyOf(call), image);
  const readRejection = (answer: unknown): UpstreamError | undefined => rejectionOf(answer, call);
  const answer = await http.post(path, body, { signal, secrets, readRejection });
  const total = input.numInferenceSteps;
  function* outputOf(data: Uint8Array): Generator<RowEvent, RowOutput> {
    // Report all steps as done, also for a server that sends no partial images.
    yield { type: 'progress', done: total, total };
    const facts = { width: input.width, height: input.height, seed: seedOfImage(input.seed, index) };
    return { data, contentType: contentTypeOf(data), facts };
  }
  if (answer.contentType !== 'text/event-stream') {
    const [image] = listProperty(await answer.json(maxEventBytes), 'data');
    const data = bytesOf(image);
    if (data !== undefined) return yield* outputOf(data);
    throw unavailable(`answers ${path} without data[0].b64_json`);
  }
  for await (const event of answer.events(maxEventBytes)) {
    const streamError = errorIn(event);
    if (streamError !== undefined) throw streamFailure(streamError, secrets);
    const data = bytesOf(event);
    const type = textProperty(event, 'type') ?? '';
    if (data !== undefined && type.endsWith('.completed')) return yield* outputOf(data);
    if (data === undefined || !type.endsWith('.partial_image')) yield undefined;
    else {
      const preview = { data, contentType: contentTypeOf(data), facts: {} };
      yield { type: 'progress', ...stepOf(event, total), preview };
    }
  }
  throw unavailable(`ended an image without image_generation.completed`);
}

/** Returns the step that a partial image shows. */
function stepOf(event: unknown, total: number): { done: number; total: number } {
  const partial = numberProperty(event, 'partial_image_index') ?? 0;
  return { done: numberProperty(event, 'step') ?? partial + 1, total: numberProperty(event, 'total_steps') ?? total };
}

/**
 * Returns the error for a rejection that names a field of ours which only some servers take: the model is described
 * without it from then on. OpenAI's servers name it in `param`, FastAPI's in `loc`.
 */
function rejectionOf(answer: unknown, { dialect, rejected }: ImageCall): UpstreamError | undefined {
  const [detail] = listProperty(answer, 'detail');
  const named = [textProperty(fieldOf(answer, 'error'), 'param'), ...listProperty(detail, 'loc')];
  const field = named.find((name) => typeof name === 'string' && dialect.fields.has(name)) as string | undefined;
  const type = textProperty(fieldOf(answer, 'error'), 'code') ?? textProperty(detail, 'type') ?? '';
  // Another error is about the value.
  if (field === undefined || !unknownFieldTypes.includes(type)) return undefined;
  rejected.add(field);
  return new UpstreamError('model_unsupported', `rejects the field ${field}, which is left out from now on`);
}

function formOf(body: object, image: Uint8Array): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) form.set(name, String(value));
  form.set('image', new Blob([new Uint8Array(image)], { type: 'image/png' }), 'image.png');
  return form;
}

function bodyOf({ model, input, index, dialect }: ImageCall): object {
  const { width, height, outputFormat, outputCompression, previewEvery, numInferenceSteps: steps } = input;
  const shown = previewEvery === 0 ? 0 : Math.min(maxPartialImages, Math.floor((steps - 1) / previewEvery));
  return {
    model,
    prompt: input.prompt,
    n: 1,
    size: `${width}x${height}`,
    ...(dialect.hasStream
      ? { stream: true, partial_images: shown, output_format: outputFormat }
      : { response_format: 'b64_json' }),
    ...(dialect.fields.has('seed') && { seed: seedOfImage(input.seed, index) }),
    ...(dialect.fields.has('num_inference_steps') && { num_inference_steps: steps }),
    ...(dialect.fields.has('guidance_scale') && { guidance_scale: input.guidanceScale }),
    ...(dialect.fields.has('negative_prompt') &&
      input.negativePrompt !== '' && { negative_prompt: input.negativePrompt }),
    ...(dialect.hasDarkroomFields && {
      output_compression: outputCompression,
      seed: seedOfImage(input.seed, index),
      num_inference_steps: steps,
      guidance_scale: input.guidanceScale,
      guidance_rescale: input.guidanceRescale,
      ...(input.negativePrompt !== '' && { negative_prompt: input.negativePrompt }),
    }),
  };
}

function bytesOf(value: unknown): Uint8Array | undefined {
  const text = fieldOf(value, 'b64_json');
  return typeof text === 'string' && text !== '' ? Buffer.from(text, 'base64') : undefined;
}

/** Detects the type by the first bytes: it may differ from the requested one. */
function contentTypeOf(data: Uint8Array): string {
  const type = imageTypeOf(data);
  if (type !== undefined) return type;
  throw unavailable(`sent ${data.byteLength} bytes as an image, expected PNG, JPEG or WebP`);
}
