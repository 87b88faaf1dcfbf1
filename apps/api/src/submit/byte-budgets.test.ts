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
