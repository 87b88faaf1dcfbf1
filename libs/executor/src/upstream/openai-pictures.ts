/** Pictures by `/v1/images/generations`, as OpenAI's API reference has it, with the fields that another Darkroom takes besides. */
import type { RowEvent, RowOutput } from '@darkroom/core';
import { type PictureInput, seedOfPicture } from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { pictureTypeOf } from '../picture-type.ts';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { errorIn, streamFailure, unavailable } from './upstream-error.ts';
import type { UpstreamHttp } from './upstream-http.ts';

/** Of an event: 16 million pixels of noise as PNG, in base64. */
const mostEventBytes = 64 * 1024 * 1024;
const mostPartialImages = 3;

/** What a server takes besides the prompt. */
export interface PictureDialect {
  /** Seed, steps, guidance and the rest: another Darkroom. */
  hasOurFields: boolean;
  /** Whether it shows pictures in the making. Who does not has its own name for how it sends them. */
  hasStream: boolean;
}

interface PictureAsk {
  model: string;
  input: PictureInput;
  index: number;
}

export async function* runOpenaiPicture(
  http: UpstreamHttp,
  ask: PictureAsk & { dialect: PictureDialect },
  signal: AbortSignal,
): AsyncGenerator<Said, RowOutput, void> {
  const { input, index } = ask;
  const path = '/v1/images/generations';
  const secrets = [input.prompt, input.negativePrompt];
  const answer = await http.post(path, bodyOf(ask), { signal, secrets });
  const total = input.numInferenceSteps;
  function* outputOf(data: Uint8Array): Generator<RowEvent, RowOutput> {
    // Who shows nothing in the making has come far, too.
    yield { type: 'progress', done: total, total };
    const facts = { width: input.width, height: input.height, seed: seedOfPicture(input.seed, index) };
    return { data, contentType: contentTypeOf(data), facts };
  }
  if (answer.contentType !== 'text/event-stream') {
    const [picture] = listOf(await answer.json(mostEventBytes), 'data');
    const data = bytesOf(picture);
    if (data !== undefined) return yield* outputOf(data);
    throw unavailable(`answers ${path} without data[0].b64_json`);
  }
  for await (const event of answer.events(mostEventBytes)) {
    const said = errorIn(event);
    if (said !== undefined) throw streamFailure(said, secrets);
    const data = bytesOf(event);
    const type = textOf(event, 'type') ?? '';
    if (data !== undefined && type.endsWith('.completed')) return yield* outputOf(data);
    if (data === undefined || !type.endsWith('.partial_image')) yield undefined;
    else {
      const preview = { data, contentType: contentTypeOf(data), facts: {} };
      yield { type: 'progress', ...placeOf(event, total), preview };
    }
  }
  throw unavailable(`ended a picture without image_generation.completed`);
}

/** Of what is sent as a picture in the making: which step it shows. */
function placeOf(event: unknown, total: number): { done: number; total: number } {
  const partial = numberOf(event, 'partial_image_index') ?? 0;
  return { done: numberOf(event, 'step') ?? partial + 1, total: numberOf(event, 'total_steps') ?? total };
}

function bodyOf({ model, input, index, dialect }: PictureAsk & { dialect: PictureDialect }): object {
  const { width, height, outputFormat, outputCompression, previewEvery, numInferenceSteps: steps } = input;
  const shown = previewEvery === 0 ? 0 : Math.min(mostPartialImages, Math.floor((steps - 1) / previewEvery));
  return {
    model,
    prompt: input.prompt,
    n: 1,
    size: `${width}x${height}`,
    ...(dialect.hasStream
      ? { stream: true, partial_images: shown, output_format: outputFormat }
      : { response_format: 'b64_json' }),
    ...(dialect.hasOurFields && {
      output_compression: outputCompression,
      seed: seedOfPicture(input.seed, index),
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

/** By the first bytes: what was asked for and what came may differ. */
function contentTypeOf(data: Uint8Array): string {
  const type = pictureTypeOf(data);
  if (type !== undefined) return type;
  throw unavailable(`sent ${data.byteLength} bytes as a picture, expected PNG, JPEG or WebP`);
}
