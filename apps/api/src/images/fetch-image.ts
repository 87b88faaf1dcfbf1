/** Fetches images from untrusted servers. */
import type { IncomingMessage } from 'node:http';
import { withTimeLimit } from '@darkroom/core';
import { guardedRequest, type GuardedResult, type Resolve } from '@darkroom/service';
import { ApiError, overloaded } from '../http/api-error.ts';
import { GrowingBuffer } from '../body/growing-buffer.ts';
import type { ImageIntake } from './image-intake.ts';
import type { FileShare, FileWaiter } from '../body/file-memory.ts';

export type FetchResult =
  /** `release` frees the memory of the bytes. */
  | { status: 'fetched'; bytes: Uint8Array; release: () => void }
  /** `why`: for the client, without internal details, such as `which leads to an address that is not public`. */
  | { status: 'failed'; why: string };

export interface FetchImageOptions {
  intake: ImageIntake;
  waiter: FileWaiter;
  /** For tests. */
  resolve?: Resolve | undefined;
  /** For tests. */
  limitMs?: number;
}

type Answer =
  | { location: string }
  | { why: string }
  /** Rejected for lack of memory. */
  | { rejection: ApiError }
  | { bytes: Uint8Array; release: () => void };

const maxUrlCharacters = 2048;
const maxRedirects = 3;
/** Time for an answer to begin, and again for its body to arrive, without waits for memory. */
const defaultLimitMs = 15_000;
/** Time for the whole fetch, with redirects and waits. */
const totalLimitMs = 60_000;
/** File servers use the last two for unknown types. */
const typePattern = /^(?:image\/|(?:application|binary)\/octet-stream)/i;

/**
 * Fetches an image and follows redirects; checks every address, the last one too. Owners and hosts have separate slots.
 * Throws like `takeTurn`.
 */
export async function fetchImageUrl(url: string, options: FetchImageOptions): Promise<FetchResult> {
  const { intake, waiter } = options;
  const release = await intake.takeFetch(waiter);
  try {
    return await withTimeLimit(totalLimitMs, waiter.signal, (signal) =>
      followRedirects(url, { ...options, waiter: { ...waiter, signal } }),
    );
  } catch (error) {
    // The total time limit aborted a wait while the client is still connected.
    if (error instanceof ApiError && error.code === 'client_gone' && !waiter.signal.aborted) throw overloaded();
    throw error;
  } finally {
    release();
  }
}

async function followRedirects(url: string, options: FetchImageOptions): Promise<FetchResult> {
  let target = url;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const problem = urlProblem(target, options.intake);
    if (problem !== undefined) return failed(problem);
    const result = await requestInHostSlot(target, options);
    if (result.status === 'refused') return failed('which leads to an address that is not public');
    if (result.status === 'failed') return failed(`which could not be fetched (${result.reason})`);
    const { read } = result;
    if ('bytes' in read) return { status: 'fetched', ...read };
    if ('rejection' in read) throw read.rejection;
    if ('why' in read) return failed(read.why);
    target = new URL(read.location, target).href;
  }
  return failed(`which redirects more than ${maxRedirects} times`);
}

/** Sends one request in a slot of its host. Ports do not count: a host may have any number. */
async function requestInHostSlot(url: string, options: FetchImageOptions): Promise<GuardedResult<Answer>> {
  const { intake, waiter } = options;
  const host = new URL(url).hostname.replace(/\.$/, '');
  const release = await intake.takeFetchFrom(host, waiter);
  try {
    return await sendRequest(url, options);
  } finally {
    release();
  }
}

function failed(why: string): FetchResult {
  return { status: 'failed', why };
}

/**
 * Returns the problem with a URL, or undefined. Plain `http` is allowed only with private addresses: it is not
 * authenticated.
 */
function urlProblem(url: string, { allowPrivate }: ImageIntake): string | undefined {
  const isUrl = url.length <= maxUrlCharacters && URL.canParse(url);
  const { protocol, username, password } = isUrl ? new URL(url) : { protocol: '', username: '', password: '' };
  if (!isUrl || username !== '' || password !== '')
    return `which is not a URL of at most ${maxUrlCharacters} characters without a user or password`;
  return protocol === 'https:' || (protocol === 'http:' && allowPrivate) ? undefined : 'which is not https';
}

async function sendRequest(
  url: string,
  { intake, waiter, resolve, limitMs = defaultLimitMs }: FetchImageOptions,
): Promise<GuardedResult<Answer>> {
  const cut = new AbortController();
  const onTimeout = (): void => cut.abort(new DOMException('the fetch timed out', 'TimeoutError'));
  const onDisconnect = (): void => cut.abort(waiter.signal.reason);
  const timer = new PausableTimer(onTimeout);
  timer.start(limitMs);
  waiter.signal.addEventListener('abort', onDisconnect);
  const headers = { Accept: 'image/png, image/jpeg, image/webp', 'User-Agent': 'Darkroom-Images/1' };
  const target = {
    url,
    method: 'GET',
    headers,
    signal: cut.signal,
    allowPrivate: intake.allowPrivate,
    resolve,
  } as const;
  try {
    return await guardedRequest(target, async (response) => {
      const { statusCode: code = 0, headers: given } = response;
      if (code >= 300 && code < 400 && given.location !== undefined && URL.canParse(given.location, url))
        return { location: given.location };
      if (code !== 200) return { why: `which is answered with HTTP ${code}` };
      const type = given['content-type'];
      if (type !== undefined && !typePattern.test(type)) return { why: 'which is not an image by its Content-Type' };
      const maxBytes = Number(given['content-length'] ?? intake.maxFileBytes);
      if (maxBytes > intake.maxFileBytes) return { why: `which has more than ${intake.maxFileBytes} bytes` };
      timer.start(limitMs);
      return readAll(response, { maxBytes, memory: intake.files.open(maxBytes, waiter), timer });
    });
  } finally {
    timer.pause();
    waiter.signal.removeEventListener('abort', onDisconnect);
  }
}

async function readAll(
  response: IncomingMessage,
  { maxBytes, memory, timer }: { maxBytes: number; memory: FileShare; timer: PausableTimer },
): Promise<Answer> {
  const bytes = new GrowingBuffer(maxBytes);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (bytes.length + chunk.byteLength > maxBytes) {
        memory.free();
        return { why: `which has more than ${maxBytes} bytes` };
      }
      // Waits for memory do not count against the server's time limit.
      timer.pause();
      await memory.grow(chunk.byteLength);
      timer.resume();
      bytes.append(chunk);
    }
  } catch (error) {
    memory.free();
    if (error instanceof ApiError) return { rejection: error };
    throw error;
  }
  memory.complete(bytes.length);
  return { bytes: bytes.written(), release: () => memory.free() };
}

/** Timer that can be paused. */
class PausableTimer {
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #leftMs = 0;
  #startMs = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  start(limitMs: number): void {
    clearTimeout(this.#timer);
    this.#leftMs = limitMs;
    this.resume();
  }

  resume(): void {
    this.#startMs = performance.now();
    this.#timer = setTimeout(this.#onEnd, Math.max(0, this.#leftMs));
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.#leftMs -= performance.now() - this.#startMs;
  }
}
