/** A picture from a server that nobody here trusts. */
import type { IncomingMessage } from 'node:http';
import { guardedRequest, type GuardedResult, type Resolve } from '@darkroom/service';
import type { PictureDoor } from './picture-door.ts';
import type { LetGo, Waiter } from './waiting-line.ts';

export type FetchResult =
  /** `letGo`: of the room that the bytes take. */
  | { status: 'fetched'; bytes: Uint8Array; letGo: LetGo }
  /** `why`: in words that show nothing of ours, such as `which leads to an address that is not public`. */
  | { status: 'failed'; why: string };

export interface FetchPictureOptions {
  door: PictureDoor;
  waiter: Waiter;
  /** For tests. */
  resolve?: Resolve | undefined;
  /** For tests. */
  limitMs?: number;
}

type Answer =
  | { location: string }
  | { why: string }
  /** There was no room for it. */
  | { turnedAway: unknown }
  | { bytes: Uint8Array; letGo: LetGo };

const maxUrlCharacters = 2048;
const maxRedirects = 3;
/** For an answer to begin, and again for all of it to come. */
const defaultLimitMs = 15_000;
/** Servers of files say the last two of files whose type they do not know. */
const typePattern = /^(?:image\/|(?:application|binary)\/octet-stream)/i;

/** Fetches it, over redirects: each address is checked, also the last. Throws as `WaitingLine.take`. */
export async function fetchPicture(url: string, options: FetchPictureOptions): Promise<FetchResult> {
  let target = url;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const wrong = wrongUrl(target, options.door);
    if (wrong !== undefined) return failed(wrong);
    const result = await ask(target, options);
    if (result.status === 'refused') return failed('which leads to an address that is not public');
    if (result.status === 'failed') return failed(`which could not be fetched (${result.reason})`);
    const { read } = result;
    if ('bytes' in read) return { status: 'fetched', ...read };
    if ('turnedAway' in read) throw read.turnedAway;
    if ('why' in read) return failed(read.why);
    target = new URL(read.location, target).href;
  }
  return failed(`which redirects more than ${maxRedirects} times`);
}

function failed(why: string): FetchResult {
  return { status: 'failed', why };
}

/** `http` is for networks of one's own: what comes over it can be anybody's. */
function wrongUrl(url: string, { allowPrivate }: PictureDoor): string | undefined {
  const isUrl = url.length <= maxUrlCharacters && URL.canParse(url);
  const { protocol, username, password } = isUrl ? new URL(url) : { protocol: '', username: '', password: '' };
  if (!isUrl || username !== '' || password !== '')
    return `which is no URL of at most ${maxUrlCharacters} characters without a user or password`;
  return protocol === 'https:' || (protocol === 'http:' && allowPrivate) ? undefined : 'which is not https';
}

async function ask(
  url: string,
  { door, waiter, resolve, limitMs = defaultLimitMs }: FetchPictureOptions,
): Promise<GuardedResult<Answer>> {
  const cut = new AbortController();
  const late = (): void => cut.abort(new DOMException('it took too long', 'TimeoutError'));
  const gone = (): void => cut.abort(waiter.signal.reason);
  let timer = setTimeout(late, limitMs);
  waiter.signal.addEventListener('abort', gone);
  const headers = { Accept: 'image/png, image/jpeg, image/webp', 'User-Agent': 'Darkroom-Pictures/1' };
  const target = { url, method: 'GET', headers, signal: cut.signal, allowPrivate: door.allowPrivate, resolve } as const;
  try {
    return await guardedRequest(target, async (response) => {
      const { statusCode: code = 0, headers: given } = response;
      if (code >= 300 && code < 400 && given.location !== undefined && URL.canParse(given.location, url))
        return { location: given.location };
      if (code !== 200) return { why: `which is answered with HTTP ${code}` };
      const type = given['content-type'];
      if (type !== undefined && !typePattern.test(type)) return { why: 'which is no picture by its Content-Type' };
      const most = Number(given['content-length'] ?? door.maxFileBytes);
      if (most > door.maxFileBytes) return { why: `which has more than ${door.maxFileBytes} bytes` };
      // Standing in line is not the server's fault.
      clearTimeout(timer);
      let letGo: LetGo;
      try {
        letGo = await door.files.take(most, waiter);
      } catch (turnedAway) {
        return { turnedAway };
      }
      timer = setTimeout(late, limitMs);
      return readAll(response, { most, letGo });
    });
  } finally {
    clearTimeout(timer);
    waiter.signal.removeEventListener('abort', gone);
  }
}

/** Into one buffer: a list of pieces that is joined would be in memory twice. */
async function readAll(response: IncomingMessage, { most, letGo }: { most: number; letGo: LetGo }): Promise<Answer> {
  const bytes = Buffer.allocUnsafeSlow(most);
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (length + chunk.byteLength > most) {
        letGo();
        return { why: `which has more than ${most} bytes` };
      }
      length += chunk.copy(bytes, length);
    }
  } catch (error) {
    letGo();
    throw error;
  }
  // What was not written to takes no memory.
  letGo(length);
  return { bytes: bytes.subarray(0, length), letGo };
}
