/** Pictures of other servers: real ones, that do what servers do. */
import type { Resolve } from '@darkroom/service';
import { describe, expect, it } from 'vitest';
import { servePictures, servePng } from '../testing/picture-server.ts';
import { plain, pngOf } from '../testing/pictures.ts';
import { fetchPicture, type FetchPictureOptions } from './fetch-picture.ts';
import { createPictureDoor } from './picture-door.ts';
import type { Waiter } from './waiting-line.ts';

const guarded = createPictureDoor({ maxInputPixels: 4096, inputAllowPrivate: false });
const resolve: Resolve = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
const waiter: Waiter = { owner: 'alice', signal: new AbortController().signal };
const notPublic = 'which leads to an address that is not public';

describe('fetching', () => {
  const door = createPictureDoor({ maxInputPixels: 4096, inputAllowPrivate: true });
  const whyOf = async (url: string, options: Partial<FetchPictureOptions> = {}): Promise<string> => {
    const result = await fetchPicture(url, { door, waiter, ...options });
    return result.status === 'failed' ? result.why : result.status;
  };

  it('ends with what is no picture, too much, too late or in a circle', async () => {
    const server = await servePictures((request, response) => {
      const { url = '' } = request;
      if (url === '/html') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
      else if (url === '/missing') response.writeHead(404).end();
      else if (url === '/circle') response.writeHead(302, { location: '/circle' }).end();
      else if (url === '/large') response.writeHead(200, { 'content-length': door.maxFileBytes + 1 }).end();
      else if (url === '/endless') {
        response.writeHead(200);
        const write = (): void => void (response.destroyed || response.write(Buffer.alloc(16_384), write));
        write();
      } else if (url === '/cut')
        response.writeHead(200, { 'content-length': 100 }).write('x', () => response.destroy());
      // Or it never answers.
    });
    expect(await whyOf(`${server.url}/html`)).toBe('which is no picture by its Content-Type');
    expect(await whyOf(`${server.url}/missing`)).toBe('which is answered with HTTP 404');
    expect(await whyOf(`${server.url}/circle`)).toBe('which redirects more than 3 times');
    const tooMuch = `which has more than ${door.maxFileBytes} bytes`;
    expect(await whyOf(`${server.url}/large`)).toBe(tooMuch);
    expect(await whyOf(`${server.url}/endless`)).toBe(tooMuch);
    expect(await whyOf(`${server.url}/cut`)).toMatch(/^which could not be fetched/);
    expect(await whyOf(`${server.url}/silent`, { limitMs: 50 })).toBe('which could not be fetched (no answer in time)');
    expect(await whyOf('https://user:secret@example.com')).toMatch(/^which is no URL /);
    // All that was taken of the room is back.
    (await door.files.take(2 * door.maxFileBytes, { ...waiter, owner: '', isHolding: true }))();
  });

  it('ends when its client is gone, and keeps of its room what the file takes', async () => {
    const data = await pngOf(plain(64, 64));
    const server = await servePictures((request, response) => {
      response.writeHead(200);
      if (request.url === '/whole') response.end(data);
      else response.write(data, () => client.abort());
    });
    const client = new AbortController();
    const whyGone = await whyOf(`${server.url}/begun`, { waiter: { ...waiter, signal: client.signal } });
    expect(whyGone).toMatch(/^which could not be fetched/);
    const result = await fetchPicture(`${server.url}/whole`, { door, waiter });
    const rest = door.maxFileBytes - data.byteLength;
    (await door.files.take(rest, { ...waiter, isHolding: true }))();
    if (result.status === 'fetched') result.letGo();
    expect(result.status).toBe('fetched');
  });

  it('refuses a name that leads to a private address', async () => {
    const inside = await servePictures(servePng(await pngOf(plain(64, 64))));
    const url = inside.url.replace('http://127.0.0.1', 'https://pictures.example.com');
    expect(await whyOf(url, { door: guarded, resolve })).toBe(notPublic);
    expect(inside.asked).toEqual([]);
  });

  it.each([301, 302, 303, 307, 308])('refuses a %i to a private address: each of them is checked', async (code) => {
    const inside = await servePictures(servePng(await pngOf(plain(64, 64))));
    let isOutside = true;
    const outside = await servePictures((_request, response) => {
      isOutside = false;
      response.writeHead(code, { location: inside.url.replace('http:', 'https:') }).end();
    });
    // Of the servers of this test the first one counts as public.
    const seen = {
      ...guarded,
      get allowPrivate(): boolean {
        return isOutside;
      },
    };
    expect(await whyOf(outside.url, { door: seen })).toBe(notPublic);
    expect([outside.asked.length, inside.asked.length]).toEqual([1, 0]);
  });
});
