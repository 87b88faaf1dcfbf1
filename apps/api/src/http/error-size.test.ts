/** Error answers stay small, whatever a body of the maximum size contains. */
import { Buffer } from 'node:buffer';
import { expect, it } from 'vitest';
import { openCallerApi } from '../testing/open-text-api.ts';

const maxBodyBytes = 1_048_576;
const maxErrorBytes = 16_384;

/** Below the limit on items of a body, which would otherwise reject the body first. */
const maxItems = 190_000;
const fill = (item: string): string =>
  `[${Array.from({ length: Math.min(maxItems, Math.floor(900_000 / (item.length + 1))) }, () => item).join(',')}]`;
const names = (value: string): string =>
  `{${Array.from({ length: Math.floor(900_000 / (value.length + 9)) }, (_, index) => `"n${index}":${value}`).join(',')}}`;
const long = JSON.stringify('x'.repeat(900_000));

/** Large JSON values that are invalid in every field. */
const values: Readonly<Record<string, string>> = {
  numbers: fill('-1'),
  'empty objects': fill('{}'),
  names: names('1'),
  'a long text': long,
  'a long name': `[{${long}:1}]`,
};

const fields = ['messages', 'tools', 'input', 'prompt', 'image', 'loras', 'stop', 'metadata', 'response_format'];
const routes = [
  '/v1/predict',
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/images/edits',
  '/generate',
  '/fal/queue/darkroom/tiny',
  '/replicate/v1/predictions',
];

it.each(routes)(
  '%s answers invalid bodies of 1 MB with errors below 16 KB',
  async (route) => {
    const test = await openCallerApi({ config: { maxBodyBytes } });
    const base = route.startsWith('/v1/responses') || route.includes('ompletions') ? { model: 'writer' } : {};
    const found: string[] = [];
    const send = async (title: string, body: string): Promise<void> => {
      const headers = { 'Content-Type': 'application/json' };
      const response = await test.api.request(route, { method: 'POST', headers, body });
      const bytes = Buffer.byteLength(await response.text());
      if (bytes > maxErrorBytes || response.status < 400 || response.status >= 500)
        found.push(`${title}: ${response.status}, ${bytes} bytes`);
    };
    for (const [name, value] of Object.entries(values)) {
      await send(`body of ${name}`, value);
      for (const field of fields) {
        const wrap = route.startsWith('/replicate') ? (inner: string) => `{"version":"tiny","input":${inner}}` : String;
        const rest = JSON.stringify({
          prompt: 'x',
          messages: [{ role: 'user', content: 'x' }],
          input: 'x',
          temperature: 'x',
          n: 'x',
          ...base,
          [field]: undefined,
        });
        await send(`${field} of ${name}`, wrap(`{"${field}":${value},${rest.slice(1)}`));
      }
    }
    expect(found).toEqual([]);
  },
  300_000,
);

it.each([
  ['/v1/predict', '{"prompt":"x","loras":'],
  ['/v1/chat/completions', '{"model":"writer","messages":'],
  ['/v1/completions', '{"model":"writer","prompt":'],
  ['/v1/responses', '{"model":"writer","input":'],
  ['/v1/responses', '{"model":"writer","input":"x","tools":'],
])('%s lists only the first invalid items of a list: %s…', async (route, start) => {
  const test = await openCallerApi({ config: { maxBodyBytes } });
  for (const item of ['{}', '-1', '[[],{}]']) {
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: `${start}${fill(item)}}` };
    const response = await test.api.request(route, init);
    expect([response.status, Buffer.byteLength(await response.text())]).toEqual([
      expect.toSatisfy((status: number) => status >= 400 && status < 500),
      expect.toSatisfy((bytes: number) => bytes < maxErrorBytes),
    ]);
  }
});
