/**
 * The types of the client library against the schemas that /openapi.json is made of, and against what the API really says.
 * Types are compared by `npm run check` alone: a run of these tests does not see them.
 */
import {
  type AcceptedRequest,
  type CanceledRequest,
  createClient,
  type ImageInfo,
  type Model,
  type PictureModel,
  type PictureRequest,
  type PictureView,
  type RequestEvent,
  type RequestView,
  type TextModel,
  type TextRequest,
  type TextView,
} from '@darkroom/client';
import { age, testEnvelope } from '@darkroom/testing';
import { expireRequests } from '@darkroom/store';
import { expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { runNext, startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../../apps/api/src/testing/test-api.ts';
import {
  acceptedSchema,
  cancelSchema,
  imageSchema,
  modelSchema,
  type pictureBodySchema,
  type pictureModelSchema,
  type pictureStatusSchema,
  requestSchema,
  type textBodySchema,
  type textModelSchema,
  type textStatusSchema,
} from '../../apps/api/src/v1/api-schemas.ts';

/** What a schema lets through, as it comes out of JSON: no field is there and undefined. */
type Answer<Schema extends z.ZodType> = Json<z.output<Schema>>;
type Json<Value> = Value extends Uint8Array
  ? Value
  : Value extends object
    ? { [Key in keyof Value]: Json<Exclude<Value[Key], undefined>> }
    : Value;

it('promises what the OpenAPI document says', () => {
  expectTypeOf<Answer<typeof acceptedSchema>>().toExtend<AcceptedRequest>();
  expectTypeOf<Answer<typeof requestSchema>>().toExtend<RequestView>();
  expectTypeOf<Answer<typeof pictureStatusSchema>>().toExtend<PictureView>();
  expectTypeOf<Answer<typeof textStatusSchema>>().toExtend<TextView>();
  expectTypeOf<Answer<typeof imageSchema>>().toExtend<ImageInfo>();
  expectTypeOf<Answer<typeof cancelSchema>>().toExtend<CanceledRequest>();
  expectTypeOf<Answer<typeof pictureModelSchema>>().toExtend<PictureModel>();
  expectTypeOf<Answer<typeof textModelSchema>>().toExtend<TextModel>();
  expectTypeOf<Answer<typeof modelSchema>>().toExtend<Model>();
});

it('asks for what the OpenAPI document takes, and for all of it', () => {
  type Body = z.input<typeof pictureBodySchema>;
  // Files go as a form.
  type Sent = { [Key in keyof PictureRequest]: Exclude<PictureRequest[Key], Blob> };
  expectTypeOf<Sent>().toExtend<Body>();
  expectTypeOf<keyof PictureRequest>().toEqualTypeOf<keyof Body>();
  type TextBody = z.input<typeof textBodySchema>;
  expectTypeOf<TextRequest>().toExtend<TextBody>();
  type TextFields = { [Key in keyof TextRequest as string extends Key ? never : Key]: 1 };
  expectTypeOf<keyof TextFields>().toEqualTypeOf<keyof TextBody>();
});

const common = { id: z.string().regex(/^\d+-0$/), request_id: z.string(), timestamp: z.iso.datetime() };
const cuts = { prompt_tokens_cut: z.int().nullable(), negative_prompt_tokens_cut: z.int().nullable() };
const bytes = z.custom<Uint8Array<ArrayBuffer>>((value) => value instanceof Uint8Array);
const eventSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('queued'), ...common, queue_position: z.int(), attempt: z.int() }),
  z.strictObject({ type: z.literal('started'), ...common, attempt: z.int() }),
  z.strictObject({
    type: z.literal('progress'),
    ...common,
    index: z.int(),
    step: z.int(),
    total_steps: z.int(),
    progress: z.number(),
    preview: z.string().startsWith('data:image/webp;base64,').optional(),
  }),
  z.strictObject({ type: z.literal('image'), ...common, ...imageSchema.omit({ b64_json: true }).shape, data: bytes }),
  z.strictObject({ type: z.literal('succeeded'), ...common, ...cuts, images: z.array(imageSchema) }),
  z.strictObject({
    type: z.literal('failed'),
    ...common,
    error: z.strictObject({ code: z.string(), message: z.string() }),
  }),
  z.strictObject({ type: z.literal('canceled'), ...common }),
  z.strictObject({ type: z.literal('expired'), ...common }),
]);

function clientOf({ api }: TestApi) {
  return createClient({ baseUrl: 'http://localhost', fetch: async (url, init) => api.request(url, init) });
}

/** The types of the request's events, each of which has all that the client's type promises. */
async function followed(test: TestApi, id: string): Promise<string[]> {
  const types: string[] = [];
  for await (const event of clientOf(test).stream(id)) types.push(eventSchema.parse(event).type);
  return types;
}

it('brings all that it promises of a request that succeeds', async () => {
  expectTypeOf<Answer<typeof eventSchema>>().toExtend<RequestEvent>();
  const test = await openTestApi();
  const client = clientOf(test);
  await startWorker(test.store);
  expect((await client.models()).map((model) => modelSchema.parse(model).id)).toEqual(['tiny']);
  const { request_id: id } = acceptedSchema.parse(await client.submit({ prompt: 'a fox', n: 2 }));
  expect(requestSchema.parse(await client.get(id)).status).toBe('queued');
  const run = await runNext(test.store);
  await run.progress(1, Uint8Array.of(1, 2, 3));
  await run.progress(2);
  await run.output(0, Buffer.from('a picture'), 6);
  expect(requestSchema.parse(await client.get(id)).status).toBe('running');
  await run.output(1, Buffer.from('another'));
  await run.finish();
  const ended = requestSchema.parse(await client.wait(id));
  expect([ended.status, ended.parameters.prompt]).toEqual(['succeeded', 'a fox']);
  expect(await followed(test, id)).toEqual([
    'queued',
    'started',
    'progress',
    'progress',
    'image',
    'image',
    'succeeded',
  ]);
  const pictures = await client.images(id);
  expect(pictures.map(({ data }) => Buffer.from(data).toString())).toEqual(['a picture', 'another']);
});

it('brings all that it promises of a request that ends otherwise', async () => {
  const test = await openTestApi({ config: { storePrompts: false } });
  const client = clientOf(test);
  await startWorker(test.store);
  const failed = await test.submit();
  await (await runNext(test.store)).finish({ state: 'failed', error: { code: 'engine_failed', message: 'it broke' } });
  expect(requestSchema.parse(await client.wait(failed))).toMatchObject({
    status: 'failed',
    parameters: { prompt: null },
  });
  expect(await followed(test, failed)).toEqual(['queued', 'started', 'failed']);
  const canceled = await test.submit();
  expect(cancelSchema.parse(await client.cancel(canceled)).status).toBe('canceled');
  expect(await followed(test, canceled)).toEqual(['queued', 'canceled']);
  const expired = await test.submit({ timeout_s: 0.1 });
  await age(test.store, testEnvelope({ id: expired }), 100);
  await expireRequests(test.store, 'tiny');
  expect(await followed(test, expired)).toEqual(['queued', 'expired']);
});
