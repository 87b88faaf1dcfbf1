/** Fetching images from real HTTP servers, with their faults. */
import { setMaxListeners } from 'node:events';
import type { Resolve } from '@darkroom/service';
import { describe, expect, it } from 'vitest';
import { serveImages, servePng } from '../testing/image-server.ts';
import { plain, pngOf } from '../testing/images.ts';
import { fetchImageUrl, type FetchImageOptions } from './fetch-image.ts';
import { createImageIntake, type ImageIntake } from './image-intake.ts';
import type { Waiter } from '../body/take-turn.ts';

const guarded = createImageIntake({ maxInputPixels: 4096, inputAllowPrivate: false });
const resolve: Resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
const waiter: Waiter = { owner: 'alice', signal: new AbortController().signal };
/** Throws unless this much memory is free right now. */
async function expectFree(intake: ImageIntake, bytes: number, owner = waiter.owner): Promise<void> {
  const memory = intake.files.open(bytes, { ...waiter, owner, holdsOtherFile: true });
  await memory.grow(bytes);
  memory.free();
}

const notPublic = 'which leads to an address that is not public';

describe('fetching', () => {
  const intake = createImageIntake({ maxInputPixels: 4096, inputAllowPrivate: true });
  const whyOf = async (url: string, options: Partial<FetchImageOptions> = {}): Promise<string> => {
    const result = await fetchImageUrl(url, { intake, waiter, ...options });
    return result.status === 'failed' ? result.why : result.status;
  };

  it('fails for files that are not images or too large, timeouts and redirect loops', async () => {
    const server = await serveImages((request, response) => {
      const { url = '' } = request;
      if (url === '/html') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
      else if (url === '/missing') response.writeHead(404).end();
      else if (url === '/circle') response.writeHead(302, { location: '/circle' }).end();
      else if (url === '/large') response.writeHead(200, { 'content-length': intake.maxFileBytes + 1 }).end();
      else if (url === '/endless') {
        response.writeHead(200);
        const write = (): void => void (response.destroyed || response.write(Buffer.alloc(16_384), write));
        write();
      } else if (url === '/cut')
        response.writeHead(200, { 'content-length': 100 }).write('x', () => response.destroy());
      // Other paths never answer.
    });
    expect(await whyOf(`${server.url}/html`)).toBe('which is not an image by its Content-Type');
    expect(await whyOf(`${server.url}/missing`)).toBe('which is answered with HTTP 404');
    expect(await whyOf(`${server.url}/circle`)).toBe('which redirects more than 3 times');
    const tooMuch = `which has more than ${intake.maxFileBytes} bytes`;
    expect(await whyOf(`${server.url}/large`)).toBe(tooMuch);
    expect(await whyOf(`${server.url}/endless`)).toBe(tooMuch);
    expect(await whyOf(`${server.url}/cut`)).toMatch(/^which could not be fetched/);
    expect(await whyOf(`${server.url}/silent`, { limitMs: 50 })).toBe('which could not be fetched (no answer in time)');
    expect(await whyOf('https://user:secret@example.com')).toMatch(/^which is not a URL /);
    // All reserved memory is free again.
    await expectFree(intake, 2 * intake.maxFileBytes, '');
  });

  it('ends when the client disconnects, and holds only the memory of the file', async () => {
    const data = await pngOf(plain(64, 64));
    const server = await serveImages((request, response) => {
      response.writeHead(200);
      if (request.url === '/whole') response.end(data);
      else response.write(data, () => client.abort());
    });
    const client = new AbortController();
    const whyGone = await whyOf(`${server.url}/begun`, { waiter: { ...waiter, signal: client.signal } });
    expect(whyGone).toMatch(/^which could not be fetched/);
    const result = await fetchImageUrl(`${server.url}/whole`, { intake, waiter });
    const rest = intake.maxFileBytes - data.byteLength;
    await expectFree(intake, rest);
    if (result.status === 'fetched') result.release();
    expect(result.status).toBe('fetched');
  });

  it('rejects a name that resolves to a private address', async () => {
    const inside = await serveImages(servePng(await pngOf(plain(64, 64))));
    const url = inside.url.replace('http://127.0.0.1', 'https://images.example.com');
    expect(await whyOf(url, { intake: guarded, resolve })).toBe(notPublic);
    expect(inside.requestedPaths).toEqual([]);
  });

  it.each([301, 302, 303, 307, 308])('rejects a %i redirect to a private address', async (code) => {
    const inside = await serveImages(servePng(await pngOf(plain(64, 64))));
    let isOutside = true;
    const outside = await serveImages((_request, response) => {
      isOutside = false;
      response.writeHead(code, { location: inside.url.replace('http:', 'https:') }).end();
    });
    // Only the first server of this test counts as public.
    const seen = {
      ...guarded,
      get allowPrivate(): boolean {
        return isOutside;
      },
    };
    expect(await whyOf(outside.url, { intake: seen })).toBe(notPublic);
    expect([outside.requestedPaths.length, inside.requestedPaths.length]).toEqual([1, 0]);
  });
});

/** Starts a server that never answers and counts its connections. */
async function serveSilent() {
  const server = await serveImages(() => {});
  return { url: server.url, count: () => server.requestedPaths.length };
}

describe('concurrent fetches', () => {
  it('of one owner leave slots for others, and those of one host for other hosts', async () => {
    const intake = createImageIntake({ maxInputPixels: 4096, inputAllowPrivate: true });
    const client = new AbortController();
    setMaxListeners(0, client.signal);
    const silent = await serveSilent();
    const data = await pngOf(plain(64, 64));
    const other = await serveImages(servePng(data));
    const fetchAs = (owner: string, url: string, signal = waiter.signal) =>
      fetchImageUrl(url, { intake, waiter: { owner, signal } });
    const stuck = ['alice', 'carol'].flatMap((owner) =>
      Array.from({ length: 60 }, () => fetchAs(owner, silent.url, client.signal).catch((error: unknown) => error)),
    );
    await expect.poll(() => silent.count()).toBe(8);
    const elsewhere = other.url.replace('127.0.0.1', 'localhost');
    expect(await fetchAs('bob', elsewhere)).toMatchObject({ status: 'fetched' });
    expect(silent.count()).toBe(8);
    client.abort();
    await Promise.all(stuck);
    // All slots are free again.
    expect(await fetchAs('alice', other.url)).toMatchObject({ status: 'fetched' });
  });
});
