import { expect, it } from 'vitest';
import { openTestApi } from '../testing/test-api.ts';
import { errorSchema } from './error-response.ts';

it.each([
  ['POST', '/predict', '/v1/predict'],
  ['GET', '/predict/tiny-1', '/v1/predict/tiny-1'],
  ['POST', '/api/predict', '/v1/predict'],
  ['POST', '/api/v1/predict', '/v1/predict'],
  ['POST', '/v1/predict/', '/v1/predict'],
  ['POST', '/v1//predict', '/v1/predict'],
  ['POST', '/V1/Predict', '/v1/predict'],
  ['POST', '/v1/predcit', '/v1/predict'],
  ['POST', '/chat/completions', '/v1/chat/completions'],
  ['POST', '/images/generations', '/v1/images/generations'],
  ['POST', '/v1/generate', '/generate'],
  ['GET', '/models', '/v1/models'],
  ['GET', '/healthz', '/health'],
  ['GET', '/v1/health', '/health'],
])('a 404 for %s %s suggests %s', async (method, path, closest) => {
  const { api } = await openTestApi();
  const response = await api.request(path, { method });
  const { error } = errorSchema.parse(await response.json());
  expect([response.status, error]).toMatchObject([
    404,
    { code: 'route_not_found', message: `There is no route at this path; did you mean ${closest}?` },
  ]);
});

it.each(['/sdapi/v1/txt2img', '/x', `/${'v1/predict/'.repeat(2000)}`, '/a'])(
  'suggests nothing for a path that resembles no route: %.20s',
  async (path) => {
    const { api } = await openTestApi();
    const { error } = errorSchema.parse(await (await api.request(path)).json());
    expect(error.message).toBe('There is no route at this path; /docs lists all paths.');
  },
);
