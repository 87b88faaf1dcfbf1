/** Pictures that are not taken: told by the field, what came and what was expected, with nothing stored and no room kept. */
import { connect } from 'node:net';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { listen } from '../testing/listen.ts';
import { servePictures, servePng } from '../testing/picture-server.ts';
import { dataUrl, formOf, halfClear, openPictureApi, plain, pngOf } from '../testing/pictures.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { createPictureDoor } from './picture-door.ts';

async function idOf(response: Response): Promise<string> {
  if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
  return ((await response.json()) as { request_id: string }).request_id;
}

function sendForm(test: TestApi, form: FormData, headers: Record<string, string> = {}): Promise<Response> {
  return Promise.resolve(test.api.request('/v1/predict', { method: 'POST', body: form, headers }));
}

/** What a refusal says, and that nothing is left of what was refused. */
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

describe('refused, with nothing stored', () => {
  it('what is no picture, or one that is not taken', async () => {
    const test = await openPictureApi({ config: { maxInputPixels: 10_000 } });
    const refuse = async (image: string, more: object = {}) =>
      refusalOf(test, test.post({ prompt: 'x', image, ...more }));
    const whole = await pngOf(plain(64, 64));
    const taken = 'expected a PNG, JPEG or WebP picture';
    expect(await refuse(asDataUrl('hello'))).toBe(`image is no picture (5 bytes), ${taken}`);
    expect(await refuse(asDataUrl('<svg xmlns="http://www.w3.org/2000/svg"/>'))).toBe(`image is an SVG, ${taken}`);
    expect(await refuse(asDataUrl(whole.subarray(0, whole.length - 30)))).toBe(
      `image is a picture that is broken or cut short, ${taken}`,
    );
    expect(await refuse(await dataUrl(plain(200, 64)))).toBe('image is 200x64 pixels, expected at most 10000 pixels');
    expect(await refuse(await dataUrl(halfClear(64, 64)))).toBe(
      'image is transparent in parts, expected an opaque picture, or a mask beside it',
    );
    const mask = await dataUrl(plain(64, 96));
    expect(await refuse(await dataUrl(plain(64, 64)), { mask })).toBe(
      'mask is 64x96, expected 64x64, which is the size of image',
    );
    expect(await refuse('cid:image')).toBe(`image is "cid:image", which did not come along, ${taken}`);
  });

  it('a server that is not public, or leads to one that is not', async () => {
    const test = await openPictureApi();
    const inside = await servePictures(servePng(await pngOf(plain(64, 64))));
    const refuse = (image: string) => refusalOf(test, test.post({ prompt: 'x', image }));
    expect(await refuse(inside.url)).toContain('which is not https');
    for (const host of ['127.0.0.1', '[::1]', '169.254.169.254', 'localhost', '10.1.2.3'])
      expect(await refuse(`https://${host}/x.png`)).toBe(
        `image is "https://${host}/x.png", which leads to an address that is not public, expected a PNG, JPEG or WebP picture on a public server`,
      );
    expect(inside.asked).toEqual([]);
  });

  it('a form with wrong parts', async () => {
    const test = await openPictureApi();
    const image = await pngOf(plain(64, 64));
    const other = await sendForm(test, formOf({ prompt: 'x', picture: image }));
    expect([other.status, await messageOf(other)]).toEqual([
      400,
      'picture is a file, expected files called image and mask only',
    ]);
    const twice = formOf({ prompt: 'x', image });
    twice.append('image[]', new Blob([new Uint8Array(image)]), 'second.png');
    expect(await messageOf(await sendForm(test, twice))).toBe('image comes more than once, expected one');
    expect(await messageOf(await sendForm(test, formOf({ prompt: 'x', n: 'two' })))).toBe(
      'n is "two", expected a whole number from 1 to 10',
    );
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

  it('files that are too large, whether they say so or not, and fields that are', async () => {
    const test = await openPictureApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const { url } = await listen(test);
    const codeOf = async (form: FormData, isEndless = false): Promise<unknown[]> => {
      const encoded = new Response(form);
      const headers = { 'Content-Type': encoded.headers.get('content-type')! };
      const body = isEndless ? encoded.body : new Uint8Array(await encoded.arrayBuffer());
      const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
      const response = await fetch(`${url}/v1/predict`, init);
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
    };
    const { maxFileBytes } = createPictureDoor({ maxInputPixels: 4096, inputAllowPrivate: false });
    const tooLarge = [413, 'body_too_large'];
    for (const isEndless of [false, true]) {
      expect(await codeOf(formOf({ prompt: 'x', image: Buffer.alloc(maxFileBytes + 1) }), isEndless)).toEqual(tooLarge);
      expect(await codeOf(formOf({ prompt: 'x', image: Buffer.alloc(4 * maxFileBytes) }), isEndless)).toEqual(tooLarge);
    }
    expect(await codeOf(formOf({ prompt: 'x'.repeat(1025) }))).toEqual(tooLarge);
  });

  it('a picture for a model of another kind, or one that draws from prompts only', async () => {
    const test = await openTestApi();
    const response = await sendForm(test, formOf({ prompt: 'x', image: await pngOf(plain(64, 64)) }));
    expect(await refusalOf(test, response)).toBe('image is "cid:image", expected none: tiny draws from prompts only');
  });

  it('leaves its room to others, whatever came of it', async () => {
    const test = await openPictureApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const big = Buffer.alloc(40_000);
    for (let count = 0; count < 8; count++)
      expect((await sendForm(test, formOf({ prompt: 'x', image: big, mask: big }))).status).toBe(400);
    const image = await pngOf(plain(64, 64));
    for (let count = 0; count < 8; count++) await idOf(await sendForm(test, formOf({ prompt: 'x', image })));
  });

  it('a form that breaks off', async () => {
    const test = await openPictureApi({ config: { maxInputPixels: 4096, maxBodyBytes: 1024 } });
    const { url } = await listen(test);
    const { hostname, port } = new URL(url);
    for (let count = 1; count <= 3; count++) {
      const socket = connect(Number(port), hostname);
      const head = ['POST /v1/predict HTTP/1.1', 'Host: localhost', 'Content-Type: multipart/form-data; boundary=here'];
      const part = '--here\r\nContent-Disposition: form-data; name="image"; filename="x.png"\r\n\r\nbytes';
      socket.write([...head, 'Content-Length: 80000', '', part].join('\r\n'), () => socket.destroySoon());
      await expect.poll(() => test.lines.filter((line) => line.includes('"status":400'))).toHaveLength(count);
    }
    await idOf(await sendForm(test, formOf({ prompt: 'x', image: await pngOf(plain(64, 64)) })));
  });

  it('logs nothing of pictures', async () => {
    const test = await openPictureApi();
    const secret = Buffer.from('my secret picture').toString('base64');
    await test.post({ prompt: 'x', image: `data:image/png;base64,${secret}` });
    await test.post({ prompt: 'x', image: 'https://127.0.0.1/my-secret' });
    expect(test.lines.join()).not.toContain(secret);
    expect(test.lines.join()).not.toContain('my-secret');
  });
});
