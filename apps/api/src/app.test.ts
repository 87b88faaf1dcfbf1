import { DarkroomError } from '@darkroom/core';
import { openTestStore } from '@darkroom/testing';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, it, vi } from 'vitest';
import { errorSchema } from './http/error-response.ts';
import { createTestApi, openTestApi } from './testing/test-api.ts';

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

it('generates a valid OpenAPI document with every route and valid examples', async () => {
  const test = await openTestApi();
  const document = (await (await test.api.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
    components: { schemas: Record<string, { required?: string[]; additionalProperties?: boolean; oneOf?: unknown }> };
  };
  expect(await new Validator().validate(structuredClone(document))).toEqual({ valid: true });
  const documented = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = test.api.routes
    .filter(
      ({ method, path }) =>
        method !== 'ALL' &&
        !/^\/(?:docs|assets|admin\/queues)/.test(path) &&
        !['/', '/openapi.json', '/client.html', '/admin'].includes(path),
    )
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  expect(documented.toSorted()).toEqual(served.toSorted());
  expect(documented.length).toBeGreaterThan(8);
  expect(document.components.schemas['ImageRequest']).toMatchObject({
    required: ['prompt'],
    additionalProperties: false,
    properties: { num_inference_steps: { type: ['integer', 'null'], minimum: 1 }, prompt: { maxLength: 4000 } },
  });
  // Bodies and answers are of one kind or the other.
  const { schemas } = document.components;
  expect(schemas['Request']!.oneOf).toEqual([refTo('ImageStatus'), refTo('TextStatus')]);
  expect(schemas['Model']!.oneOf).toEqual([refTo('ImageModel'), refTo('TextModel')]);
  expect(schemas['TextRequest']).toMatchObject({
    additionalProperties: false,
    properties: { max_tokens: { type: ['integer', 'null'], minimum: 1 }, temperature: { maximum: 2 } },
  });
  expect(Object.keys(document.paths['/v1/predict']!['post']!.responses)).toEqual([
    '200',
    '202',
    '400',
    '401',
    '403',
    '404',
    '408',
    '409',
    '413',
    '415',
    '421',
    '422',
    '429',
    '500',
    '503',
  ]);
});

it('every operation has a tag of the document and an operationId of its own that begins with a verb', async () => {
  const test = await openTestApi();
  const { paths, tags } = (await (await test.api.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { operationId: string; tags: string[] }>>;
    tags: { name: string }[];
  };
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  expect(new Set(operations.flatMap((operation) => operation.tags))).toEqual(new Set(tags.map(({ name }) => name)));
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const verbs =
    'submit|pin|unpin|create|edit|generate|get|list|count|stream|run|cancel|delete|revoke|download|resend|check|pause|resume|restart|forget|drain|sleep|wake|call|retry|drop';
  expect(ids.filter((id) => !new RegExp(`^(?:${verbs})[A-Z]`).test(id))).toEqual([]);
});

it('documents the format of stream positions, and no schema for frames', async () => {
  const test = await openTestApi();
  const { paths } = (await (await test.api.request('/openapi.json')).json()) as {
    paths: Record<string, { get: Operation }>;
  };
  const { parameters, responses } = paths['/v1/predict/{id}/events']!.get;
  const patterns = parameters.flatMap(({ name, schema: { pattern } }) => (pattern ? [[name, pattern]] : []));
  expect(patterns).toEqual([
    ['after', String.raw`^(?:\d{1,13}(?:-0)?)?$`],
    ['last-event-id', String.raw`^(?:\d{1,13}(?:-0)?)?$`],
  ]);
  // OpenAPI 3.1 has no schema for the items of a stream: tools would validate the whole stream against it.
  expect(responses['200']!.content['text/event-stream']!.schema).toBeUndefined();
});

interface Operation {
  parameters: { name: string; schema: { pattern?: string } }[];
  responses: Record<string, { content: Record<string, { schema?: unknown }> }>;
}

it('builds the document once, with a server URL relative to it', async () => {
  const test = await openTestApi();
  const build = vi.spyOn(test.api, 'getOpenAPI31Document');
  const texts = await Promise.all([1, 2, 3].map(async () => (await test.api.request('/openapi.json')).text()));
  expect(new Set(texts).size).toBe(1);
  expect(build).toHaveBeenCalledTimes(1);
  expect(JSON.parse(texts[0]!)).toMatchObject({ servers: [{ url: './' }] });
});

it('shows the document on a page that loads nothing from other servers', async () => {
  const test = await openTestApi();
  const page = await (await test.api.request('/docs')).text();
  expect(page).not.toMatch(/https?:/);
  const loaded = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => `/${path}`);
  expect(loaded).toHaveLength(5);
  for (const path of ['/docs', ...loaded]) {
    const { status, headers } = await test.api.request(path);
    expect([path, status, headers.get('x-content-type-options')]).toEqual([path, 200, 'nosniff']);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'; ");
  }
});

it('answers unknown routes and methods in the standard error format', async () => {
  const test = await openTestApi();
  const missing = await test.api.request('/v2/predict');
  expect([missing.status, errorSchema.parse(await missing.json()).error.code]).toEqual([404, 'route_not_found']);
  for (const [path, method, allow] of [
    ['/v1/predict', 'PUT', 'POST, GET, HEAD'],
    ['/v1/models', 'POST', 'GET, HEAD'],
    ['/v1/responses/input_tokens', 'PUT', 'POST'],
    ['/v1/predict/tiny-00000000000000000000000000', 'PUT', 'GET, HEAD, DELETE'],
  ] as const) {
    const wrong = await test.api.request(path, { method });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, allow]);
    expect(errorSchema.parse(await wrong.json()).message).toBe(
      `The method is not allowed on this path, expected ${allow}.`,
    );
  }
});

it('shows an error id for internal errors, without prompts in answer or log', async () => {
  const cause = Object.assign(new Error('ERR user_script:1: boom'), { command: { args: ['a secret prompt'] } });
  const failing = (): never => {
    throw new DarkroomError('internal', 'test.seed', 'secret of the house', cause);
  };
  const test = createTestApi({ store: (await openTestApi()).store, drawSeed: failing });
  const response = await test.post({ prompt: 'a secret prompt' });
  expect(response.status).toBe(500);
  const { message, error } = errorSchema.parse(await response.json());
  expect(error).toMatchObject({ type: 'server_error', code: 'internal' });
  const [id] = /[\da-f-]{36}/.exec(message)!;
  expect(message).toBe(`Internal server error. The server's log has the details under ${id}.`);
  const [fault, line] = test.lines.map((text) => JSON.parse(text) as Record<string, unknown>);
  expect(fault).toMatchObject({
    error_id: id,
    err: { op: 'test.seed', message: 'secret of the house: ERR user_script:1: boom' },
  });
  expect(line).toMatchObject({ status: 500, error_id: id });
  expect(test.lines.join()).not.toContain('a secret prompt');
});

it('answers 503 if Redis is out of memory', async () => {
  const store = openTestStore();
  const full = new Proxy(store, {
    get(target, name, receiver) {
      if (name === 'keysOfRequest')
        return () => {
          throw new Error("OOM command not allowed when used memory > 'maxmemory'.");
        };
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  const test = createTestApi({ store: full });
  const response = await test.api.request('/v1/predict/tiny-00000000000000000000000000');
  expect([response.status, errorSchema.parse(await response.json()).error.code]).toEqual([503, 'unavailable']);
});
