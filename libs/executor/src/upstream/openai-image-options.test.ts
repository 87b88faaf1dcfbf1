/** Image servers that list their fields (vLLM-omni, SGLang): what they receive, and fields that they reject. */
import type { ImageCard, ImageInput } from '@darkroom/kinds';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ToyOpenai } from '../testing/toy-openai.ts';
import { createOpenai } from './openai.ts';
import { UpstreamExecutor } from './upstream-executor.ts';

const input: ImageInput = {
  prompt: 'a wish',
  negativePrompt: 'no cats',
  width: 64,
  height: 96,
  n: 1,
  numInferenceSteps: 8,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'upstream',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 0,
};
const options = ['negative_prompt', 'num_inference_steps', 'guidance_scale', 'seed'];

/** An OpenAPI document as FastAPI writes it. */
function documentOf(fields: readonly string[], editFields: readonly string[] = []): object {
  return {
    paths: {
      '/v1/images/generations': routeOf('application/json', 'ImageGenerationRequest'),
      ...(editFields.length > 0 && { '/v1/images/edits': routeOf('multipart/form-data', 'Body_edit_images') }),
      '/v1/chat/completions': {},
    },
    components: {
      schemas: {
        ImageGenerationRequest: schemaOf(['prompt', 'size', ...fields]),
        Body_edit_images: schemaOf(editFields),
      },
    },
  };
}

function routeOf(type: string, name: string): object {
  return { post: { requestBody: { content: { [type]: { schema: { $ref: `#/components/schemas/${name}` } } } } } };
}

function schemaOf(names: readonly string[]): object {
  return { properties: Object.fromEntries(names.map((name) => [name, {}])) };
}

async function open(document: object, entry: object = {}) {
  const toy = new ToyOpenai();
  toy.models = [{ id: 'flux', object: 'model', owned_by: 'vllm', max_model_len: null, ...entry }];
  toy.document = document;
  const log = new EventLog();
  const url = await toy.start();
  const executor = new UpstreamExecutor({ url, createProtocol: createOpenai, model: 'flux', onEvents: log.listener });
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as ImageCard;
  return { toy, url, log, executor, card };
}

it('sends all options that the server lists', async () => {
  const { toy, log, executor, card } = await open(documentOf(options));
  expect(card).toMatchObject({
    kind: 'image',
    steps: { min: 1, max: 200, default: 30 },
    guidance: { min: 0, max: 20, default: 4 },
    unsupported: ['guidance_rescale', 'strength'],
  });
  expect(card.takes).toBeUndefined();
  executor.submit([{ id: 'a', input }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(toy.bodies).toEqual([
    {
      model: 'flux',
      prompt: 'a wish',
      n: 1,
      size: '64x96',
      response_format: 'b64_json',
      seed: 7,
      num_inference_steps: 8,
      guidance_scale: 3,
      negative_prompt: 'no cats',
    },
  ]);
});

it('leaves out options that the server does not list, also of the card', async () => {
  const { toy, log, executor, card } = await open(documentOf(['seed']));
  expect(card).toMatchObject({
    steps: { min: 4, max: 4 },
    guidance: { min: 1, max: 1 },
    unsupported: ['negative_prompt', 'guidance_rescale', 'strength'],
  });
  executor.submit([{ id: 'a', input }]);
  await log.end('a');
  expect(Object.keys(toy.bodies[0]!)).toEqual(['model', 'prompt', 'n', 'size', 'response_format', 'seed']);
});

it('removes an option that the server lists and rejects from the card, and counts no attempt for it', async () => {
  const { toy, url, log, executor } = await open(documentOf(options));
  toy.rejectedFields = ['negative_prompt'];
  executor.submit([{ id: 'a', input }]);
  expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({
    requestIds: ['a'],
    countsNoAttempt: true,
    message: `${url} rejects the field negative_prompt, which is left out from now on`,
  });
  const card = (await executor.start()) as ImageCard;
  expect(card.unsupported).toEqual(['negative_prompt', 'guidance_rescale', 'strength']);
  executor.submit([{ id: 'a', input }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(toy.bodies.map((body) => 'negative_prompt' in body)).toEqual([true, false]);
});

it('edits an input image by a form', async () => {
  const edits = ['image', 'prompt', 'size', ...options];
  const { toy, log, executor, card } = await open(documentOf(options, edits));
  expect(card.takes).toEqual(['image']);
  const image = Buffer.from('an image');
  const attachments = new Map([['image', image]]);
  executor.submit([{ id: 'a', input: { ...input, image: true, strength: 0.8 }, attachments }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  const { image: file, ...rest } = toy.bodies[0] as { image: File };
  expect(Buffer.from(await file.arrayBuffer())).toEqual(image);
  expect(rest).toMatchObject({ prompt: 'a wish', size: '64x96', seed: '7', num_inference_steps: '8' });
});

it('takes a model with a context length for one of text, although the server has routes for images', async () => {
  const { card } = await open(documentOf(options), { max_model_len: 4096 });
  expect(card.kind).toBe('text');
});
