/** What one request, and all of an owner, may keep in the store. */
import { allKeys } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi } from '../testing/test-api.ts';

it('a request that could keep too many bytes is refused with both figures and the field to lower', async () => {
  const test = await openTestApi({ config: { requestMaxBytes: 1_000_000 } });
  const keys = await allKeys(test.store);
  const refused = async (body: object) => errorSchema.parse(await (await test.post({ prompt: 'x', ...body })).json());
  const many = await refused({ n: 10 });
  expect(many.message).toMatch(
    /^n lets this request keep up to [12]\d{6} bytes, expected less of it: a request may keep 1000000$/,
  );
  expect(many.error).toMatchObject({ code: 'invalid_value', param: 'n' });
  const previews = await refused({ size: '256x256', num_inference_steps: 200, preview: { every: 1 } });
  expect(previews.error.param).toBe('preview');
  expect(await allKeys(test.store)).toEqual(keys);
  expect((await test.post({ prompt: 'x' })).status).toBe(202);
});

it('routes of other systems say it in the names of their fields', async () => {
  const test = await openTestApi({ config: { requestMaxBytes: 1_000_000 } });
  const response = await test.api.request('/fal/queue/me/tiny', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ prompt: 'x', num_images: 10 }),
  });
  expect([response.status, await response.json()]).toMatchObject([
    422,
    {
      detail: [
        { loc: ['body', 'num_images'], msg: expect.stringContaining('num_images lets this request keep up to') },
      ],
    },
  ]);
});

it('a request beyond what all of an owner may keep is refused with the figures, until results are gone', async () => {
  const test = await openTestApi({ config: { ownerMaxBytes: 200_000 } });
  const first = await test.submit();
  const keys = await allKeys(test.store);
  const response = await test.post({ prompt: 'a fox' });
  expect([response.status, response.headers.get('retry-after')]).toEqual([429, '5']);
  const { error } = errorSchema.parse(await response.json());
  expect(error).toMatchObject({ type: 'rate_limit_error', code: 'too_many_bytes' });
  expect(error.message).toMatch(
    /^This request may keep up to 1\d{5} bytes beside the 1\d{5} of your others, and all of them may keep 200000; /,
  );
  expect(await allKeys(test.store)).toEqual(keys);
  await test.api.request(`/v1/predict/${first}`, { method: 'DELETE' });
  expect((await test.post({ prompt: 'a fox' })).status).toBe(202);
});
