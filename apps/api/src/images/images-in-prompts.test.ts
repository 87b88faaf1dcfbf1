/** Images in requests to models that this server runs: the API knows their tokens. */
import { readFileSync } from 'node:fs';
import { encodeTextCodecFiles, type TextCard, type TextInput } from '@darkroom/kinds';
import { publishModel, readAttachments, readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { dataUrl, openImageApi, plain } from '../testing/images.ts';
import { end, postJson, writer } from '../testing/open-text-api.ts';
import type { TestApi, TestApiOptions } from '../testing/test-api.ts';

const imageToken = 3;
const card: TextCard = {
  ...writer,
  id: 'reader',
  codec: 'of-reader',
  vocabularySize: 300,
  images: { token: '<image>', tokenId: imageToken, perTile: 16, minImages: 0, maxImages: 2 },
};
const directory = new URL('../../../../tools/golden/vectors/vision/llava/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
const question = { type: 'text', text: 'what is it?' };
const imagePart = (url: string) => ({ type: 'image_url', image_url: { url } });
const asking = (...parts: object[]) => ({
  model: card.id,
  messages: [{ role: 'user', content: [...parts, question] }],
});

async function open(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openImageApi(options);
  const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') };
  await publishModel(test.store, card, { name: card.codec, bytes: encodeTextCodecFiles(files) });
  await startWorker(test.store, { model: card.id });
  return test;
}

async function submit(test: TestApi, body: object): Promise<string> {
  const { request_id: id, ...rest } = (await (await postJson(test, '/v1/predict', body)).json()) as {
    request_id?: string;
  };
  if (id === undefined) throw new Error(JSON.stringify(rest));
  return id;
}

async function inputOf({ store }: TestApi, id: string): Promise<TextInput> {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return found.request.input as TextInput;
}

const countOf = (prompt: readonly number[]) => prompt.filter((id) => id === imageToken).length;

it('each image has its tokens in the prompt and is stored as a PNG', async () => {
  const test = await open();
  const [red, blue] = [await dataUrl(plain(100, 50, '#f00')), await dataUrl(plain(20, 30, '#00f'))];
  const id = await submit(test, asking(imagePart(red), imagePart(blue)));
  const input = await inputOf(test, id);
  expect(countOf(input.prompt)).toBe(32);
  expect(input.images).toEqual([
    { width: 100, height: 50 },
    { width: 20, height: 30 },
  ]);
  expect(input.messages).toEqual(asking(imagePart('image-0'), imagePart('image-1')).messages);
  expect([...(await readAttachments(test.store, id)).keys()].toSorted()).toEqual(['image-0', 'image-1']);
});

it('the parameters of a poll have messages with URLs, and make the same request again', async () => {
  const test = await open();
  const id = await submit(test, { model: card.id, prompt: question.text, image: await dataUrl(plain(30, 30)) });
  const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: object };
  expect(parameters).toMatchObject({
    prompt: null,
    messages: asking(imagePart(`/v1/predict/${id}/inputs/image-0`)).messages,
  });
  const again = await submit(
    test,
    Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null)),
  );
  expect(await inputOf(test, again)).toEqual(await inputOf(test, id));
});

it('the list of models says that it takes images', async () => {
  const test = await open();
  const { data } = (await (await test.api.request('/v1/models')).json()) as { data: { id: string }[] };
  expect(data.find(({ id }) => id === card.id)).toMatchObject({ takes: ['image'], images: { min: 0, max: 2 } });
});

it('usage counts the tokens of images, and the input tokens of a response too', async () => {
  const test = await open();
  const input = [
    {
      role: 'user',
      content: [
        { type: 'input_image', image_url: await dataUrl(plain(30, 30)) },
        { type: 'input_text', text: 'hi' },
      ],
    },
  ];
  const answer = await postJson(test, '/v1/responses/input_tokens', { model: card.id, input });
  const { input_tokens: tokens } = (await answer.json()) as { input_tokens: number };
  const { prompt } = await inputOf(
    test,
    await submit(test, { model: card.id, prompt: 'hi', image: await dataUrl(plain(30, 30)) }),
  );
  expect(tokens).toBe(prompt.length);
});

it('a model that needs an image rejects requests without one, and is not chosen for them', async () => {
  const test = await open();
  const needing = { ...card, id: 'a-needing', images: { ...card.images!, minImages: 1 as const } };
  const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') };
  await publishModel(test.store, needing, { name: card.codec, bytes: encodeTextCodecFiles(files) });
  await startWorker(test.store, { model: needing.id });
  const answer = await postJson(test, '/v1/predict', { model: needing.id, prompt: 'hi' });
  expect(await answer.json()).toMatchObject({
    error: { param: 'image', message: 'image is missing, expected one: a-needing answers questions about images' },
  });
  const id = await submit(test, { prompt: 'hi', max_tokens: 4 });
  expect(await readRequest(test.store, id)).toMatchObject({ request: { model: card.id } });
});

it('more images than the model reads are refused with the field of the first one too many', async () => {
  const test = await open();
  const image = imagePart(await dataUrl(plain(8, 8)));
  const answer = await postJson(test, '/v1/predict', asking(image, image, image));
  expect(await answer.json()).toMatchObject({
    error: {
      param: 'messages.0.content.2.image_url.url',
      message: expect.stringContaining('expected at most 2 images: reader takes no more') as string,
    },
  });
});

it.each([
  ['messages', { messages: [{ role: 'user', content: 'an <image> in words' }] }, 1, 0],
  ['prompt', { prompt: 'an <image> in words' }, 1, 0],
  ['prompt', { prompt: [1, imageToken, 2] }, 1, 0],
])('image tokens without an image are refused: %s', async (field, body, found, expected) => {
  const test = await open();
  const answer = await postJson(test, '/v1/predict', { model: card.id, ...body });
  expect(await answer.json()).toMatchObject({
    error: {
      param: field,
      message: expect.stringContaining(`has ${found} tokens <image>, expected ${expected}`) as string,
    },
  });
});

it('a text with the image token beside an image is refused', async () => {
  const test = await open();
  const image = imagePart(await dataUrl(plain(8, 8)));
  const answer = await postJson(test, '/v1/predict', asking({ type: 'text', text: '<image>' }, image));
  expect(await answer.json()).toMatchObject({
    error: { param: 'messages', message: expect.stringContaining('has 17 tokens <image>, expected 16') as string },
  });
});

it('images and messages are deleted at the end with private prompts', async () => {
  const test = await open({ config: { storePrompts: false } });
  const id = await submit(test, asking(imagePart(await dataUrl(plain(30, 30)))));
  const run = await runNext(test.store, card.id);
  await end(run, 'a red square');
  await run.finish({ state: 'succeeded', outputs: 1 });
  const { messages, images, prompt } = await inputOf(test, id);
  expect([messages, images, prompt]).toEqual([undefined, undefined, undefined]);
  expect((await test.api.request(`/v1/predict/${id}/inputs/image-0`)).status).toBe(404);
});
