import { openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { ask, publishWriter } from '../testing/open-text-api.ts';
import { createTestApi, openTestApi } from '../testing/test-api.ts';

const images = '/v1/images/generations';
const chat = '/v1/chat/completions';

it.each([
  [images, 'picture', { prompt: 'a fox' }],
  [images, 'picture', { model: 'writer', prompt: 'a fox' }],
  [chat, 'text', { messages: [{ role: 'user', content: 'hi' }] }],
  [chat, 'text', { model: 'tiny', messages: [{ role: 'user', content: 'hi' }] }],
])('%s is not found where no model is of its kind, however long one waits: %s %j', async (path, kind, body) => {
  const test = path === images ? createTestApi({ store: openTestStore() }) : await openTestApi();
  if (path === images) await publishWriter(test.store);
  const response = await ask(test, path, body);
  expect([response.status, errorSchema.parse(await response.json()).error]).toMatchObject([
    404,
    {
      code: 'model_not_found',
      param: 'model',
      message: `no model here is of the kind "${kind}", which this route is for`,
    },
  ]);
});
