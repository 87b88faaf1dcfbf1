import { createHash } from 'node:crypto';
import { type Clock, isTerminalState, type RequestStatus } from '@darkroom/core';
import { withoutMetadata } from '@darkroom/imaging';
import { picture } from '@darkroom/kinds';
import { linkOutput, readOutput, type StoreConnection } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { linkExpired, wrongLink } from '../auth/picture-links.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, checkField, invalidField } from '../http/api-error.ts';
import { errorAnswer, exampleId, requestErrors, type Route } from '../http/api-route.ts';

/** Clients go there at once. */
const linkSeconds = 300;

const metadataQuery = z.enum(['true', 'false']).optional();
const metadataExpected = 'true or false';

const file = { schema: { type: 'string' as const, format: 'binary' } };

export const imageRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/images/{index}',
  summary: 'One picture',
  description: `The bytes themselves, as soon as this picture is done, until the request expires. On a server with keys the \`url\`s in
answers are links: \`expires\` and \`signature\` open the one picture they are of to whoever comes without a key, for as long as
results are kept.`,
  params: { index: z.string().openapi({ description: 'From 0.', example: '0' }) },
  request: {
    headers: z.object({ 'if-none-match': z.string().optional() }),
    query: z.object({
      metadata: metadataQuery.openapi({
        description: '`false`: without what the file says of how it was made; the pixels are the same.',
      }),
      expires: z
        .string()
        .optional()
        .openapi({ description: 'Of a link: until when it works, in seconds since the epoch.' }),
      signature: z.string().optional().openapi({ description: 'Of a link.' }),
    }),
  },
  responses: {
    ...requestErrors,
    200: { description: 'The picture.', content: { 'image/png': file, 'image/jpeg': file, 'image/webp': file } },
    307: { description: 'Where the picture is, by a signed link; only with `links=` in `BYTES_URL`.' },
    403: errorAnswer('A link that is not ours, or was changed.', wrongLink()),
    304: { description: 'The one you have.' },
    404: errorAnswer('No such request, or no such picture.', noSuchPicture(exampleId, 1)),
    410: errorAnswer('Its time is over, or that of the link.', linkExpired()),
    400: errorAnswer('The query is wrong.', invalidField('metadata', 'no', metadataExpected)),
    409: errorAnswer('Not ready yet.', notReady(exampleId, 0, 'running')),
  },
  async handle(c, { askStore, clock }) {
    const id = requestIdOf(c);
    const text = c.req.param('index') ?? '';
    const index = /^\d{1,3}$/.test(text) ? Number(text) : undefined;
    const isPlain = checkField(metadataQuery, 'metadata', c.req.query('metadata'), metadataExpected) === 'false';
    // Elsewhere it is as it is.
    const mayLeave = !isPlain && goesAnywhere(c);
    // Both at once: the request says how long the picture may be kept, or why there is none.
    const [request, output] = await Promise.all([
      findRequest(askStore, id, c.get('owner')),
      index === undefined
        ? undefined
        : askStore((store) => (mayLeave ? linkOrRead(store, id, index) : readOutput(store, id, index))),
    ]);
    if (output === undefined || request.kind !== picture.id) throw absence(request, index);
    if (typeof output === 'string') return c.redirect(output, 307);
    const { contentType } = output.info;
    const data = isPlain ? withoutMetadata({ ...output, contentType }).data : output.data;
    const etag = `"${createHash('sha256').update(data).digest('base64url')}"`;
    const headers = { ETag: etag, 'Cache-Control': cacheControl(request, clock) };
    if (matches(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers);
    return c.body(new Uint8Array(data), 200, {
      ...headers,
      'Content-Type': contentType,
      'Content-Length': String(data.byteLength),
      'X-Content-Type-Options': 'nosniff',
    });
  },
};

/** What a page fetches or shows, ours for one, may often come from here only. Of the two headers Node's fetch sends one too. */
function goesAnywhere(c: ApiCall): boolean {
  return c.req.header('sec-fetch-site') === undefined || c.req.header('sec-fetch-mode') === 'navigate';
}

/** A URL of the picture, where clients reach what keeps it; else the picture. */
async function linkOrRead(store: StoreConnection, id: string, index: number) {
  return (await linkOutput(store, id, { index, seconds: linkSeconds })) ?? readOutput(store, id, index);
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
  if (kind !== picture.id) return notFound(`Request ${id} makes no pictures.`);
  if (index === undefined || index >= outputCount) return noSuchPicture(id, outputCount);
  if (isTerminalState(state)) return notFound(`Request ${id} is ${state}, and has no picture ${index}.`);
  return notReady(id, index, state);
}

function notFound(message: string): ApiError {
  return new ApiError(404, 'image_not_found', message);
}

function noSuchPicture(id: string, count: number): ApiError {
  return notFound(`Request ${id} has no such picture, expected 0${count === 1 ? '' : ` to ${count - 1}`}.`);
}

function notReady(id: string, index: number, state: string): ApiError {
  const message = `Picture ${index} of request ${id} is not ready yet: the request is ${state}.`;
  return new ApiError(409, 'image_not_ready', message, { headers: { 'Retry-After': '1' } });
}
