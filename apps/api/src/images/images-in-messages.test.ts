/** Images in chats: what the worker gets, what the owner sees, and which models take them. */
import type { UpstreamTextCard, UpstreamTextInput } from '@darkroom/kinds';
import { publishModel, readAttachments, readRequest } from '@darkroom/store';
import sharp from 'sharp';
import { allKeys } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { anonymousKey, hashKey } from '../auth/api-keys.ts';
import { serveImages, servePng } from '../testing/image-server.ts';
import { dataUrl, openImageApi, plain, pngOf, toFormData } from '../testing/images.ts';
import { listen } from '../testing/listen.ts';
import { end, postJson, publishWriter } from '../testing/open-text-api.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import type { TestApi, TestApiOptions } from '../testing/test-api.ts';
import type { FileShare } from '../body/file-memory.ts';
import { createStoreGuard } from '../server/store-guard.ts';
import { createImageIntake } from './image-intake.ts';
import { readConversationImage } from './read-images.ts';

const card: UpstreamTextCard = {
  id: 'looker',
  created: 1_700_000_000,
  ownedBy: 'others',
  kind: 'text',
  pipeline: 'openai',
  mode: 'autoregressive',
  takes: ['image'],
  hasChatTemplate: true,
  deterministic: { is: false, reason: 'another server runs it' },
};
const question = { type: 'text', text: 'What is this?' };
const imagePart = (url: string, more: object = {}) => ({ type: 'image_url', image_url: { url, ...more } });
const asking = (...parts: object[]) => ({
  model: card.id,
  messages: [{ role: 'user', content: [question, ...parts] }],
});

/** An API with a model that takes images in messages, and one that draws. */
async function open(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openImageApi(options);
  await publishModel(test.store, card);
  await startWorker(test.store, { model: card.id });
  return test;
}

async function submit(test: TestApi, body: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await postJson(test, '/v1/predict', body, { headers });
  const { request_id: id, ...rest } = (await answer.json()) as { request_id?: string };
  if (id === undefined) throw new Error(JSON.stringify(rest));
  return id;
}

async function inputOf({ store }: TestApi, id: string): Promise<UpstreamTextInput> {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return found.request.input as UpstreamTextInput;
}

async function errorOf(answer: Response | Promise<Response>): Promise<object> {
  const { error } = (await (await answer).json()) as { error: object };
  return { status: (await answer).status, ...error };
}

/** Noise: its PNG has more than 3 bytes per pixel. */
function noise(seed: number, side = 64) {
  const pixels = Buffer.alloc(3 * side ** 2);
  for (let at = 0, state = seed; at < pixels.length; at++) {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    pixels[at] = state >>> 24;
  }
  return sharp(pixels, { raw: { width: side, height: side, channels: 3 } });
}

const as = (name: string) => ({ Authorization: `Bearer ${name}` });

const fetchInput = (test: TestApi, id: string, name: string, headers: Record<string, string> = {}) =>
  test.api.request(`/v1/predict/${id}/inputs/${name}`, { headers });

it('images of messages are stored as PNGs, and messages name them in their place', async () => {
  const test = await open();
  const [red, blue] = [await dataUrl(plain(100, 50, '#f00')), await dataUrl(plain(20, 3000, '#00f'))];
  const id = await submit(
    test,
    asking(imagePart(red, { detail: 'low' }), { type: 'text', text: 'And' }, imagePart(blue)),
  );
  const input = await inputOf(test, id);
  expect(input.params.messages).toEqual([
    {
      role: 'user',
      content: [question, imagePart('image-0', { detail: 'low' }), { type: 'text', text: 'And' }, imagePart('image-1')],
    },
  ]);
  const sizes = [
    { width: 100, height: 50 },
    { width: 10, height: 1536 },
  ];
  expect(input.images).toEqual(sizes);
  const attachments = await readAttachments(test.store, id);
  expect([...attachments.keys()].toSorted()).toEqual(['image-0', 'image-1']);
  for (const [index, size] of sizes.entries()) {
    const file = Buffer.from(await (await fetchInput(test, id, `image-${index}`)).arrayBuffer());
    expect(file).toEqual(Buffer.from(attachments.get(`image-${index}`)!));
    expect(await sharp(file).metadata()).toMatchObject({ format: 'png', channels: 3, ...size });
  }
  expect((await fetchInput(test, id, 'image-2')).status).toBe(404);
});

it('the parameters of a poll have the URLs of the images, and make the same request again', async () => {
  const test = await open();
  const id = await submit(test, asking(imagePart(await dataUrl(plain(30, 30)))));
  const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: object };
  expect(parameters).toMatchObject({
    messages: [{ role: 'user', content: [question, imagePart(`/v1/predict/${id}/inputs/image-0`)] }],
  });
  const again = await submit(
    test,
    Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null)),
  );
  expect(await inputOf(test, again)).toEqual(await inputOf(test, id));
  expect(await readAttachments(test.store, again)).toEqual(await readAttachments(test.store, id));
});

it('an image beside a prompt is one message with both, also in a form', async () => {
  const test = await open();
  const { url } = await listen(test);
  const messages = [{ role: 'user', content: [imagePart('image-0'), question] }];
  const image = await dataUrl(plain(8, 8));
  const one = await inputOf(test, await submit(test, { model: card.id, prompt: question.text, image }));
  expect(one).toMatchObject({ params: { messages }, images: [{ width: 8, height: 8 }] });
  expect(one.params).not.toHaveProperty('prompt');
  const body = toFormData({ model: card.id, prompt: question.text, image: await pngOf(plain(9, 8)) });
  const answer = (await (await fetch(`${url}/v1/predict`, { method: 'POST', body })).json()) as { request_id: string };
  expect(await inputOf(test, answer.request_id)).toMatchObject({ params: { messages }, images: [{ width: 9 }] });
});

it('an image of a message is fetched from another server, or is an output of an earlier request', async () => {
  const test = await open({ config: { inputAllowPrivate: true } });
  const server = await serveImages(servePng(await pngOf(plain(40, 20))));
  await startWorker(test.store);
  const drawn = await test.submit({ model: 'tiny' });
  const run = await runNext(test.store);
  await run.output(0, await pngOf(plain(96, 64)));
  await run.finish();
  const id = await submit(test, asking(imagePart(`${server.url}/a`), imagePart(`/v1/predict/${drawn}/images/0`)));
  expect((await inputOf(test, id)).images).toEqual([
    { width: 40, height: 20 },
    { width: 96, height: 64 },
  ]);
});

it('images of messages belong to their owner, and are deleted with private prompts', async () => {
  const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(name), { ...anonymousKey, name }]));
  const test = await open({ apiKeys, config: { storePrompts: false } });
  const id = await submit(test, asking(imagePart(await dataUrl(plain(30, 30)))), as('alice'));
  const statusFor = async (name: string) => (await fetchInput(test, id, 'image-0', as(name))).status;
  expect([await statusFor('alice'), await statusFor('bob')]).toEqual([200, 404]);
  const stolen = asking(imagePart(`/v1/predict/${id}/inputs/image-0`));
  expect(await errorOf(postJson(test, '/v1/predict', stolen, { headers: as('bob') }))).toMatchObject({
    status: 400,
    param: 'messages.0.content.1.image_url.url',
    message: expect.stringContaining('which was not found, expected one of your images'),
  });
  const run = await runNext(test.store, card.id);
  await end(run, 'a red square');
  await run.finish({ state: 'succeeded', outputs: 1 });
  expect(await statusFor('alice')).toBe(404);
  const { params, images } = await inputOf(test, id);
  expect([params, images]).toEqual([{}, undefined]);
});

it('a model without vision rejects images by name, and the error suggests a model that takes them', async () => {
  const test = await open();
  await publishWriter(test.store);
  const image = imagePart(await dataUrl(plain(8, 8)));
  const body = { ...asking(image), model: 'writer' };
  for (const path of ['/v1/predict', '/v1/chat/completions'])
    expect(await errorOf(postJson(test, path, body))).toMatchObject({
      status: 400,
      param: 'messages.0.content.1.image_url.url',
      message: expect.stringMatching(/, expected only text: writer takes no images; looker does$/),
    });
  // Without a model, the one that takes images answers.
  const id = await submit(test, { messages: body.messages });
  expect(await readRequest(test.store, id)).toMatchObject({ request: { model: card.id } });
  const drawing = await test.submit({ image: image.image_url.url, strength: 0.5 });
  expect(await readRequest(test.store, drawing)).toMatchObject({ request: { model: 'tiny' } });
});

it.each([
  ['https://127.0.0.1/a.png', 'which leads to an address that is not public'],
  ['data:image/png;base64,bm8gaW1hZ2U=', 'expected'],
  ['/v1/predict/none/inputs/image-0', 'which was not found'],
])('a bad image in a message is refused with its field, and nothing is stored: %s', async (url, why) => {
  const test = await open();
  expect(await errorOf(postJson(test, '/v1/predict', asking(imagePart(url))))).toMatchObject({
    status: 400,
    param: 'messages.0.content.1.image_url.url',
    message: expect.stringContaining(why),
  });
  const ofRequests = /:(?:request|inputs?|events|bytes):/;
  expect((await allKeys(test.store)).filter((key) => ofRequests.test(key))).toEqual([]);
});

it('more images than a request may have are refused', async () => {
  const test = await open();
  const image = imagePart('data:image/png;base64,');
  const body = asking(...Array.from({ length: 9 }, () => image));
  expect(await errorOf(postJson(test, '/v1/predict', body))).toMatchObject({
    param: 'messages',
    message: 'messages has 9 images, expected at most 8',
  });
});

it('images that are too large together are refused', async () => {
  const test = await open({ config: { maxBodyBytes: 2 ** 25 } });
  const image = imagePart(await dataUrl(noise(3, 1500)));
  expect(await errorOf(postJson(test, '/v1/predict', asking(image, image)))).toMatchObject({
    status: 400,
    param: 'messages',
    message: expect.stringMatching(/^the images have 1\d{7} bytes as PNGs, expected at most 12582912 together/),
  });
});

it('the images of a conversation hold memory of their owner until it is stored', async () => {
  const test = await open({ config: { maxInputPixels: 4096 } });
  const images = await Promise.all([3, 5, 7].map(async (seed) => imagePart(await dataUrl(noise(seed)))));
  const ids = new Set<string>();
  // Together they have several times the memory of one owner.
  for (let times = 0; times < 20; times++) ids.add(await submit(test, asking(...images)));
  expect(ids.size).toBe(20);
});

it('a decoded image gets no memory: the request is refused at once, and does not wait with the image', async () => {
  const images = createImageIntake({ maxInputPixels: 4096, inputAllowPrivate: false });
  const waiter = { owner: 'alice', signal: new AbortController().signal };
  const others = images.files.open(images.maxFileBytes, waiter);
  await others.grow(images.maxFileBytes);
  const { store } = await open();
  const context = { images, config: {}, withStore: createStoreGuard(store, { redisMs: 1000, bytesMs: 1000 }) };
  const held: FileShare[] = [];
  const source = await dataUrl(noise(3));
  const options = { waiter, uploads: undefined, maskBy: 'brightness', held } as const;
  const reading = readConversationImage(context, options, { field: 'image', source, sizeOf: (own) => own });
  await expect(reading).rejects.toMatchObject({ status: 503, code: 'overloaded' });
  others.free();
  for (const file of held) file.free();
});

it('/v1/responses takes input_image, and a follow-up has the earlier image', async () => {
  const test = await open();
  const url = await dataUrl(plain(30, 30));
  const input = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: url, detail: 'high' },
      ],
    },
  ];
  const first = (await (
    await postJson(test, '/v1/responses', { model: card.id, input, instructions: 'Be short.', background: true })
  ).json()) as { id: string };
  const id = first.id.replace(/^resp_/, '');
  const run = await runNext(test.store, card.id);
  expect((await inputOf(test, id)).params.messages).toEqual([
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: [question, imagePart('image-0', { detail: 'high' })] },
  ]);
  const said = await test.api.request(`/v1/responses/${first.id}/input_items`);
  const path = `/v1/predict/${id}/inputs/image-0`;
  expect(await said.json()).toMatchObject({
    data: [
      { content: [{ type: 'input_text' }, { type: 'input_image', image_url: path, detail: 'high', file_id: null }] },
    ],
  });
  await run.entry({ type: 'delta', offset: 0, text: 'A square.' });
  await end(run, 'A square.');
  await run.finish({ state: 'succeeded', outputs: 1 });
  const next = { model: card.id, input: 'Which color?', previous_response_id: first.id, background: true };
  const second = (await (await postJson(test, '/v1/responses', next)).json()) as { id: string };
  const nextId = second.id.replace(/^resp_/, '');
  expect((await inputOf(test, nextId)).params.messages).toEqual([
    { role: 'user', content: [question, imagePart('image-0', { detail: 'high' })] },
    { role: 'assistant', content: 'A square.' },
    { role: 'user', content: 'Which color?' },
  ]);
  expect(await readAttachments(test.store, nextId)).toEqual(await readAttachments(test.store, id));
});
