/** Rejected images: errors name field, value and expectation; nothing is stored and no memory stays reserved. */
import { connect } from 'node:net';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { listen } from '../testing/listen.ts';
import { serveImages, servePng } from '../testing/image-server.ts';
import { dataUrl, toFormData, halfClear, openImageApi, plain, pngOf } from '../testing/images.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { createImageIntake } from './image-intake.ts';

async function idOf(response: Response): Promise<string> {
  if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
  return ((await response.json()) as { request_id: string }).request_id;
}

function sendForm(test: TestApi, form: FormData, headers: Record<string, string> = {}): Promise<Response> {
  return Promise.resolve(test.api.request('/v1/predict', { method: 'POST', body: form, headers }));
}

/** Returns the message of a rejection; expects that nothing was stored. */
async function refusalOf(test: TestApi, response: Response | Promise<Response>): Promise<string> {
  const answer = await response;
  const { error } = (await answer.json()) as { error: { message: string; param: string } };
  expect([answer.status, error.message.startsWith(`${error.param} is `)]).toEqual([400, true]);
  expect((await allKeys(test.store)).filter((key) => key.includes(':request:') || key.includes(':inputs:'))).toEqual(
    [],
  );
  return error.message;
}

const asDataUrl = (data: Buffer | string, type = 'image/png'): string =>
  `data:${type};base64,${Buffer.from(data).toString('base64')}`;

const messageOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { message: string }).message;

describe('rejects and does not store', () => {
  it('files that are not images, and unsupported images', async () => {
    const test = await openImageApi({ config: { maxInputPixels: 10_000 } });
    const refuse = async (image: string, more: object = {}) =>
      refusalOf(test, test.post({ prompt: 'x', image, ...more }));
    const whole = await pngOf(plain(64, 64));
    const taken = 'expected a PNG, JPEG or WebP image';
    expect(await refuse(asDataUrl('hello'))).toBe(`image is not an image (5 bytes), ${taken}`);
    expect(await refuse(asDataUrl('<svg xmlns="http://www.w3.org/2000/svg"/>'))).toBe(`image is an SVG, ${taken}`);
    expect(await refuse(asDataUrl(whole.subarray(0, whole.length - 30)))).toBe(
      `image is a PNG that is broken or cut short, ${taken}`,
    );
    expect(await refuse(await dataUrl(plain(200, 64)))).toBe('image is 200x64 pixels, expected at most 10000 pixels');
    expect(await refuse(await dataUrl(halfClear(64, 64)))).toBe(
      'image is partly transparent, expected an opaque image, or a separate mask',
    );
    const mask = await dataUrl(plain(64, 96));
    expect(await refuse(await dataUrl(plain(64, 64)), { mask })).toBe(
      'mask is 64x96, expected 64x64, which is the size of image',
    );
    expect(await refuse('cid:image')).toBe(`image is "cid:image", which was not uploaded, ${taken}`);
  });

  it('URLs of private addresses, and redirects to them', async () => {
    const test = await openImageApi();
    const inside = await serveImages(servePng(await pngOf(plain(64, 64))));
    const refuse = (image: string) => refusalOf(test, test.post({ prompt: 'x', image }));
    expect(await refuse(inside.url)).toContain('which is not https');
    for (const host of ['127.0.0.1', '[::1]', '169.254.169.254', 'localhost', '10.1.2.3'])
      expect(await refuse(`https://${host}/x.png`)).toBe(
        `image is "https://${host}/x.png", which leads to an address that is not public, expected a PNG, JPEG or WebP image on a public server`,
      );
    expect(inside.requestedPaths).toEqual([]);
  });

  it('forms with invalid parts', async () => {
    const test = await openImageApi();
    const image = await pngOf(plain(64, 64));
    const other = await sendForm(test, toFormData({ prompt: 'x', photo: image }));
    expect([other.status, await messageOf(other)]).toEqual([
      400,
      'photo is a file, expected only files named image and mask',
    ]);
    const twice = toFormData({ prompt: 'x', image });
    twice.append('image[]', new Blob([new Uint8Array(image)]), 'second.png');
    expect(await messageOf(await sendForm(test, twice))).toBe('image appears more than once, expected one');
    expect(await messageOf(await sendForm(test, toFormData({ prompt: 'x', n: 'two' })))).toBe(
      'n is "two", expected a whole number from 1 to 10',
    );
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    for (const [name, text, problem] of [
      ['constructor', 'x', /^constructor is not a field, expected one of model/],
      ['preview', deep, /levels deep/],
      ['preview', String.raw`{"every": "\ud800"}`, /unpaired surrogates/],
    ] as const) {
      const refused = await sendForm(test, toFormData({ prompt: 'x', [name]: text }));
      expect([refused.status, await messageOf(refused)]).toEqual([400, expect.stringMatching(problem)]);
    }
    const send = async (body: string, type: string): Promise<unknown[]> => {
      const init = { method: 'POST', body, headers: { 'Content-Type': type } };
      const response = await test.api.request('/v1/predict', init);
      return [response.status, await messageOf(response)];
    };
    expect(await send('x', 'multipart/form-data')).toEqual([
      400,
      'Content-Type has no boundary, expected the parts of a form',
    ]);
    const boundary = 'multipart/form-data; boundary=here';
    const part = '--here\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n\r\n';
    for (const body of ['', 'nothing', part, `${part}bytes`, '--here\r\n'])
      expect(await send(body, boundary)).toEqual([400, expect.stringMatching(/expected the parts of a form$/)]);
    expect((await allKeys(test.store)).filter((key) => key.includes(':request:'))).toEqual([]);
  });

  it('files and fields that are too large, with and without Content-Length', async () => {
    const test = await openImageApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const { url } = await listen(test);
    const codeOf = async (form: FormData, isEndless = false): Promise<unknown[]> => {
      const encoded = new Response(form);
      const headers = { 'Content-Type': encoded.headers.get('content-type')! };
      const body = isEndless ? encoded.body : new Uint8Array(await encoded.arrayBuffer());
      const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
      const response = await fetch(`${url}/v1/predict`, init);
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
    };
    const { maxFileBytes } = createImageIntake({ maxInputPixels: 4096, inputAllowPrivate: false });
    const tooLarge = [413, 'body_too_large'];
    for (const isEndless of [false, true]) {
      expect(await codeOf(toFormData({ prompt: 'x', image: Buffer.alloc(maxFileBytes + 1) }), isEndless)).toEqual(
        tooLarge,
      );
      expect(await codeOf(toFormData({ prompt: 'x', image: Buffer.alloc(4 * maxFileBytes) }), isEndless)).toEqual(
        tooLarge,
      );
    }
    expect(await codeOf(toFormData({ prompt: 'x'.repeat(1025) }))).toEqual(tooLarge);
    const many = Object.fromEntries(Array.from({ length: 20 }, (_value, index) => [`f${index}`, 'x'.repeat(60)]));
    expect(await codeOf(toFormData({ prompt: 'x', ...many }))).toEqual(tooLarge);
  });

  it('images for a model of another kind, or one without image input', async () => {
    const test = await openTestApi();
    const response = await sendForm(test, toFormData({ prompt: 'x', image: await pngOf(plain(64, 64)) }));
    expect(await refusalOf(test, response)).toBe('image is "cid:image", expected none: tiny draws from prompts only');
  });

  it('frees its memory after every outcome', async () => {
    const test = await openImageApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const big = Buffer.alloc(40_000);
    for (let count = 0; count < 8; count++)
      expect((await sendForm(test, toFormData({ prompt: 'x', image: big, mask: big }))).status).toBe(400);
    const image = await pngOf(plain(64, 64));
    for (let count = 0; count < 8; count++) await idOf(await sendForm(test, toFormData({ prompt: 'x', image })));
  });

  it('forms that end early', async () => {
    const test = await openImageApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const { url } = await listen(test);
    const { hostname, port } = new URL(url);
    for (let count = 1; count <= 3; count++) {
      const socket = connect(Number(port), hostname);
      const head = ['POST /v1/predict HTTP/1.1', 'Host: localhost', 'Content-Type: multipart/form-data; boundary=here'];
      const part = '--here\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n\r\nbytes';
      socket.write([...head, 'Content-Length: 80000', '', part].join('\r\n'), () => socket.destroySoon());
      await expect.poll(() => test.lines.filter((line) => line.includes('"status":400'))).toHaveLength(count);
    }
    await idOf(await sendForm(test, toFormData({ prompt: 'x', image: await pngOf(plain(64, 64)) })));
  });

  it('never logs images or their URLs', async () => {
    const test = await openImageApi();
    const secret = Buffer.from('my secret image').toString('base64');
    await test.post({ prompt: 'x', image: `data:image/png;base64,${secret}` });
    await test.post({ prompt: 'x', image: 'https://127.0.0.1/my-secret' });
    expect(test.lines.join()).not.toContain(secret);
    expect(test.lines.join()).not.toContain('my-secret');
  });
});
