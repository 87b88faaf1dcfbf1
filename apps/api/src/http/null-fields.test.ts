/** Null in a request means "not given", in every optional field of every route. */
import { publishModel, readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { dataUrl, plain } from '../testing/images.ts';
import { cardWith, openTestApi, type TestApi } from '../testing/test-api.ts';
import { serveTextModel, textModel } from '../testing/text-model.ts';

type Body = Record<string, unknown>;
interface Schema {
  $ref?: string;
  properties?: Record<string, unknown>;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
}
interface Document {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>;
  components: { schemas: Record<string, Schema> };
}

const image = await dataUrl(plain(64, 64));
const drawing = { model: 'tiny', prompt: 'a fox' };
const messages = [{ role: 'user', content: 'something sweet' }];

/** Valid bodies for every route that takes JSON. */
const bodies: Readonly<Record<string, readonly Body[]>> = {
  '/v1/predict': [drawing, { model: textModel, prompt: 'a fox' }, { model: textModel, messages }],
  '/v1/images/generations': [drawing],
  '/v1/images/edits': [{ ...drawing, images: [{ image_url: image }] }],
  '/generate': [{ model: textModel, prompt: 'a fox' }],
  '/v1/chat/completions': [{ model: textModel, messages }],
  '/v1/completions': [{ model: textModel, prompt: 'a fox' }],
  '/v1/responses': [{ model: textModel, input: 'something sweet' }],
  '/v1/responses/input_tokens': [{ model: textModel, input: 'something sweet' }],
  '/fal/queue/{owner}/{app}': [{ prompt: 'a fox' }],
  '/fal/run/{owner}/{app}': [{ prompt: 'a fox' }],
  '/fal/run/{owner}/{app}/stream': [{ prompt: 'a fox' }],
  '/replicate/v1/predictions': [{ version: 'tiny', input: { prompt: 'a fox' } }],
  '/replicate/v1/models/{owner}/{name}/predictions': [{ input: { prompt: 'a fox' } }],
};

function urlOf(path: string): string {
  return path.replace('{owner}', 'any').replace(/\{(?:app|name)\}/, 'tiny');
}

function send({ api }: TestApi, path: string, body: Body): Promise<Response> {
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  return Promise.resolve(api.request(urlOf(path), init));
}

/** Returns the fields of a schema by path (`input.seed`), true for required ones. */
function fieldsOf(document: Document, schema: Schema, prefix = ''): Map<string, boolean> {
  const { $ref, anyOf = [], oneOf = [], properties = {}, required = [] } = schema;
  const fields = new Map<string, boolean>();
  const parts = [
    ...anyOf,
    ...oneOf,
    ...($ref === undefined ? [] : [document.components.schemas[$ref.split('/').at(-1)!]!]),
  ];
  for (const part of parts)
    for (const [name, isRequired] of fieldsOf(document, part, prefix)) fields.set(name, isRequired);
  for (const [name, field] of Object.entries(properties)) {
    fields.set(`${prefix}${name}`, required.includes(name));
    if (name === 'input' && required.includes(name))
      for (const [inner, isRequired] of fieldsOf(document, field as Schema, 'input.')) fields.set(inner, isRequired);
  }
  return fields;
}

/** Adds one field to a body. */
function withField(body: Body, field: string, value: unknown): Body {
  const [name = '', inner] = field.split('.');
  return { ...body, [name]: inner === undefined ? value : { ...(body[name] as Body), [inner]: value } };
}

async function openServer(config = {}): Promise<{ test: TestApi; document: Document }> {
  const test = await openTestApi({ config });
  await publishModel(test.store, cardWith({ takes: ['image', 'mask'] }));
  await serveTextModel(test.store, {});
  return { test, document: (await (await test.api.request('/openapi.json')).json()) as Document };
}

function jsonRoutes({ paths }: Document) {
  return Object.entries(paths).flatMap(([path, { post }]) => {
    const schema = post?.requestBody?.content['application/json']?.schema;
    return schema === undefined || path.startsWith('/admin') ? [] : [{ path, schema }];
  });
}

it('covers every route that takes a JSON body', async () => {
  const { document } = await openServer();
  expect(
    jsonRoutes(document)
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual(Object.keys(bodies).toSorted());
});

it.each(Object.keys(bodies))('%s treats null in any optional field as a missing field', async (path) => {
  // With a full queue every route answers a valid body with 503 at once, and an invalid one with 400.
  // `/input_tokens` only counts tokens and queues nothing.
  const valid = path.endsWith('/input_tokens') ? 200 : 503;
  const { test, document } = await openServer({ queueMaxLength: 0 });
  const { schema } = jsonRoutes(document).find((route) => route.path === path)!;
  const fields = [...fieldsOf(document, schema)].filter(([, isRequired]) => !isRequired);
  expect(fields.length).toBeGreaterThan(5);
  const wrong: unknown[] = [];
  for (const body of bodies[path]!) {
    expect((await send(test, path, body)).status).toBe(valid);
    for (const [field] of fields) {
      if (field in body) continue;
      const isForeign =
        body['model'] === textModel
          ? !isFieldOf(document, 'TextRequest', field)
          : !isFieldOf(document, 'ImageRequest', field);
      if (path === '/v1/predict' && isForeign) continue;
      const response = await send(test, path, withField(body, field, null));
      if (response.status !== valid) wrong.push([field, response.status, await response.text()]);
    }
  }
  expect(wrong).toEqual([]);
});

function isFieldOf({ components }: Document, name: string, field: string): boolean {
  return Object.hasOwn(components.schemas[name]!.properties!, field);
}

it('stores the same request with null in all optional fields at once', async () => {
  const { test, document } = await openServer();
  for (const [path, schemaName, body] of [
    ['/v1/predict', 'ImageRequest', drawing],
    ['/v1/predict', 'TextRequest', { model: textModel, prompt: 'a fox' }],
    ['/fal/queue/{owner}/{app}', 'FalInput', { prompt: 'a fox' }],
  ] as const) {
    const fields = Object.keys(document.components.schemas[schemaName]!.properties!);
    const nulls = Object.fromEntries(fields.map((field) => [field, null]));
    const inputs = [];
    for (const sent of [body, { ...nulls, ...body }]) {
      const response = await send(test, path, sent);
      const { request_id: id } = (await response.json()) as { request_id: string };
      const found = await readRequest(test.store, id);
      inputs.push(found.status === 'found' && found.request.input);
    }
    expect(inputs[1]).toEqual(inputs[0]);
    expect(inputs[0]).toMatchObject({ seed: 42 });
  }
});

it.each([
  ['/v1/predict', { ...drawing, prompt: null }, 'prompt is null'],
  ['/v1/chat/completions', { model: textModel, messages: null }, 'messages is null'],
  ['/generate', { model: textModel, prompt: null }, 'prompt is null'],
])('%s %j: rejects null in a required field', async (path, body, message) => {
  const { test } = await openServer();
  const response = await send(test, path, body);
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)]);
});

it('the OpenAPI document marks only optional request fields as nullable', async () => {
  const { document } = await openServer();
  const { ImageRequest, FalInput, Accepted } = document.components.schemas;
  expect(ImageRequest!.properties).toMatchObject({
    seed: { type: ['integer', 'null'] },
    prompt: { type: 'string' },
    output_format: { anyOf: [{ enum: ['png', 'jpeg', 'webp'] }, { type: 'null' }] },
  });
  expect(FalInput!.properties!['strength']).toMatchObject({ type: ['number', 'null'] });
  expect(JSON.stringify(Accepted!.properties!['eta_seconds'])).not.toContain('null');
});
