import { createHash } from 'node:crypto';
import { type Clock, isTerminalState, type RequestStatus } from '@darkroom/core';
import { picture } from '@darkroom/kinds';
import { readOutput } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { addRoute, type Api, errorAnswer, requestErrors } from '../http/api-route.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { AskStore } from '../server/store-guard.ts';

export function addImageRoute(api: Api, { askStore, clock }: { askStore: AskStore; clock: Clock }): void {
  addRoute(api, imageRoute, async (c) => {
    const id = requestIdOf(c);
    const index = indexOf(c.req.param('index') ?? '');
    // Both at once: the request says how long the picture may be kept, or why there is none.
    const [request, output] = await Promise.all([
      findRequest(askStore, id, c.get('owner')),
      index === undefined ? undefined : askStore((store) => readOutput(store, id, index)),
    ]);
    if (output === undefined || request.kind !== picture.id) throw absence(request, index);
    const { data, info } = output;
    const etag = `"${createHash('sha256').update(data).digest('base64url')}"`;
    const headers = { ETag: etag, 'Cache-Control': cacheControl(request, clock) };
    if (matches(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers);
    return c.body(new Uint8Array(data), 200, {
      ...headers,
      'Content-Type': info.contentType,
      'Content-Length': String(data.byteLength),
      'X-Content-Type-Options': 'nosniff',
    });
  });
}

function indexOf(text: string): number | undefined {
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

/** While the request is open its next attempt may write the picture again, so the time to keep it starts at the end. */
function cacheControl({ expiresAtMs }: RequestStatus, clock: Clock): string {
  if (expiresAtMs === undefined) return 'private, no-cache';
  return `private, max-age=${Math.max(0, Math.floor((expiresAtMs - clock.now()) / 1000))}`;
}

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

function absence({ id, kind, outputCount, state }: RequestStatus, index: number | undefined): ApiError {
  if (kind !== picture.id)
    return new ApiError({ status: 404, code: 'image_not_found', message: `Request ${id} makes no pictures.` });
  if (index === undefined || index >= outputCount) {
    const message = `Request ${id} has no such picture, expected 0${outputCount === 1 ? '' : ` to ${outputCount - 1}`}.`;
    return new ApiError({ status: 404, code: 'image_not_found', message });
  }
  if (isTerminalState(state)) {
    const message = `Request ${id} is ${state}, and has no picture ${index}.`;
    return new ApiError({ status: 404, code: 'image_not_found', message });
  }
  const message = `Picture ${index} of request ${id} is not ready yet: the request is ${state}.`;
  return new ApiError({ status: 409, code: 'image_not_ready', message, headers: { 'Retry-After': '1' } });
}

const file = { schema: { type: 'string' as const, format: 'binary' } };

const imageRoute = {
  method: 'get' as const,
  path: '/v1/predict/{id}/images/{index}',
  summary: 'One picture',
  description: 'The bytes themselves, as soon as this picture is done, until the request expires.',
  request: {
    params: z.object({ id: z.string(), index: z.string().openapi({ description: 'From 0.', example: '0' }) }),
    headers: z.object({ 'if-none-match': z.string().optional() }),
  },
  responses: {
    ...requestErrors,
    200: {
      description: 'The picture.',
      content: { 'image/png': file, 'image/jpeg': file, 'image/webp': file },
    },
    304: { description: 'The one you have.' },
    404: errorAnswer('No such request, or no such picture.', {
      message: 'Request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe has no such picture, expected 0.',
      code: 'image_not_found',
    }),
    409: errorAnswer('Not ready yet.', {
      message: 'Picture 0 of request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe is not ready yet: the request is running.',
      code: 'image_not_ready',
    }),
  },
};
