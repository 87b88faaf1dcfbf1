import { deleteOldest } from '@darkroom/core';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ApiCall } from './api-env.ts';
import { matchesTag } from './answer-file.ts';

const compress = promisify(gzip);
/** Texts below this size are sent uncompressed: gzip saves too little for a second copy in memory. */
const minBytes = 1024;
/** Cached compressed texts per process, oldest evicted first. The texts change only with a deployment. */
const maxStored = 32;
const stored = new Map<string, Promise<Buffer>>();

/**
 * Answers with a text that is the same for all clients, gzipped if the client accepts it, or 304 if it has the text.
 * Each text is compressed once, on libuv's thread pool.
 */
export async function answerStaticText(
  c: ApiCall,
  data: Uint8Array,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const hash = createHash('sha256').update(data).digest('base64url');
  const isCompressed = data.byteLength >= minBytes && takesGzip(c.req.header('accept-encoding'));
  // Each encoding has its own tag: a range or a cache must not mix them.
  const etag = isCompressed ? `"${hash}-gzip"` : `"${hash}"`;
  const always = { ...headers, ETag: etag, Vary: 'Accept-Encoding' };
  if (matchesTag(c.req.header('if-none-match'), etag)) return c.body(null, 304, always);
  const body = isCompressed ? await compressOnce(hash, data) : data;
  return c.body(new Uint8Array(body), 200, {
    ...always,
    'Content-Length': String(body.byteLength),
    ...(isCompressed && { 'Content-Encoding': 'gzip' }),
  });
}

function compressOnce(hash: string, data: Uint8Array): Promise<Buffer> {
  const known = stored.get(hash);
  if (known !== undefined) return known;
  const made = compress(data);
  stored.set(hash, made);
  made.catch(() => stored.delete(hash));
  if (stored.size > maxStored) deleteOldest(stored);
  return made;
}

/** Returns true if `Accept-Encoding` lists gzip or `*` with a weight above 0. */
export function takesGzip(header = ''): boolean {
  const weights = new Map(
    header.split(',').map((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return [name, weight === undefined ? 1 : Number(weight)];
    }),
  );
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0;
}
