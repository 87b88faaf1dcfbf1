/** The limit on the bytes that the requests of one owner may store. */
import { allKeys } from '@darkroom/testing';
import { dropRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi } from '../testing/test-api.ts';

it('rejects a request beyond the byte limit of its owner until earlier results are deleted', async () => {
  const prompt = 'x'.repeat(2000);
  const test = await openTestApi({ config: { ownerMaxBytes: 11_000 } });
  const first = await test.submit({ prompt });
  const keys = await allKeys(test.store);
  const response = await test.post({ prompt });
  expect([response.status, response.headers.get('retry-after')]).toEqual([429, '5']);
  const { error } = errorSchema.parse(await response.json());
  expect(error).toMatchObject({ type: 'rate_limit_error', code: 'too_many_bytes' });
  expect(error.message).toMatch(/^Your requests store [89]\d{3} bytes; the limit is 11000 bytes: /);
  expect(await allKeys(test.store)).toEqual(keys);
  await test.api.request(`/v1/predict/${first}`, { method: 'DELETE' });
  await dropRequest(test.store, first, { only: ['canceled'] });
  expect((await test.post({ prompt })).status).toBe(202);
});
