import { createHash } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import type { ApiCall } from './api-env.ts';
import { ApiError } from './api-error.ts';
import { parseByteRange } from './byte-range.ts';

/** Request headers that `answerFile` reads, for the OpenAPI document. */
export const fileHeaders = z.object({
  'if-none-match': z.string().optional(),
  range: z.string().optional().openapi({ description: 'One range of bytes.', example: 'bytes=0-1023' }),
  'if-range': z.string().optional(),
});

interface StoredFile {
  data: Uint8Array;
  contentType: string;
  cacheControl: string;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Answers 200 with a file, 206 with the part that `Range` selects, or 304 if `If-None-Match` has the file's ETag.
 * Throws 416 for a range outside of the file.
 */
export function answerFile(c: ApiCall, { data, contentType, cacheControl, headers }: StoredFile): Response {
  const etag = `"${createHash('sha256').update(data).digest('base64url')}"`;
  const always = { ...headers, ETag: etag, 'Cache-Control': cacheControl, 'Accept-Ranges': 'bytes' };
  if (matchesTag(c.req.header('if-none-match'), etag)) return c.body(null, 304, always);
  // A date in If-Range never matches: files have no Last-Modified.
  const ifRange = c.req.header('if-range');
  const range = ifRange === undefined || ifRange === etag ? c.req.header('range') : undefined;
  const part = parseByteRange(range, data.byteLength);
  if (part.status === 'unsatisfiable') throw rangeOutside(data.byteLength);
  const body = part.status === 'partial' ? data.subarray(part.first, part.last + 1) : data;
  const all = {
    ...always,
    'Content-Type': contentType,
    'Content-Length': String(body.byteLength),
    'X-Content-Type-Options': 'nosniff',
  };
  if (part.status === 'full') return c.body(new Uint8Array(body), 200, all);
  const contentRange = `bytes ${part.first}-${part.last}/${data.byteLength}`;
  return c.body(new Uint8Array(body), 206, { ...all, 'Content-Range': contentRange });
}

/** Tests `If-None-Match` against an ETag. The comparison is weak, as RFC 9110 requires. */
export function matchesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

export function rangeOutside(length: number): ApiError {
  const message = `Range selects no byte of this file, expected bytes from 0 to ${length - 1}`;
  return new ApiError(416, 'range_not_satisfiable', message, {
    param: 'Range',
    headers: { 'Content-Range': `bytes */${length}` },
  });
}
