import { type Clock, isTerminalState, type RequestSnapshot } from '@darkroom/core';
import { withoutMetadata } from '@darkroom/imaging';
import { imageKind } from '@darkroom/kinds';
import { linkOutput, readOutput, type StoreConnection } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { linkExpired, wrongLink } from '../auth/image-links.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { answerFile, fileHeaders, rangeOutside } from '../http/answer-file.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, checkField, invalidField } from '../http/api-error.ts';
import { describeErrorAnswer, exampleId, requestErrors, type Route } from '../openapi/api-route.ts';

/** Lifetime of a redirect's signed URL: clients follow it at once. */
const linkSeconds = 300;

const metadataQuery = z.enum(['true', 'false']).optional();
const metadataExpected = 'true or false';

const file = { schema: { type: 'string' as const, format: 'binary' } };

export const imageRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/images/{index}',
  operationId: 'getImage',
  tag: 'Images',
  summary: 'Get an image',
  description: `The bytes of an image, as soon as it is done and until the request expires. On a server with keys the \`url\`s in
answers are signed links: \`expires\` and \`signature\` open this one image without a key until the request expires.`,
  params: { index: z.string().openapi({ description: 'Index of the image, from 0.', example: '0' }) },
  request: {
    headers: fileHeaders,
    query: z.object({
      metadata: metadataQuery.openapi({
        description: '`false`: without the generation metadata in the file; the pixels are the same.',
      }),
      expires: z.string().optional().openapi({ description: 'Expiry of a signed link, in seconds since the epoch.' }),
      signature: z.string().optional().openapi({ description: 'Signature of a signed link.' }),
    }),
  },
  responses: {
    ...requestErrors,
    200: { description: 'The image.', content: { 'image/png': file, 'image/jpeg': file, 'image/webp': file } },
    206: {
      description: 'The part that `Range` selects.',
      content: { 'image/png': file, 'image/jpeg': file, 'image/webp': file },
    },
    307: { description: 'Redirect to the image in the object store; only with `links=` in `BYTES_URL`.' },
    403: describeErrorAnswer('The signature of the link is invalid.', wrongLink()),
    304: { description: 'The image has not changed since `If-None-Match`.' },
    404: describeErrorAnswer('No such request, or no such image.', noSuchImage(exampleId, 1)),
    410: describeErrorAnswer('The request or the link has expired.', linkExpired()),
    400: describeErrorAnswer('The query is invalid.', invalidField('metadata', 'no', metadataExpected)),
    416: describeErrorAnswer('`Range` selects no byte of the file.', rangeOutside(11_954)),
    409: describeErrorAnswer('The image is not ready yet.', notReady(exampleId, 0, 'running')),
  },
  async handle(c, { withStore, clock }) {
    const id = requestIdOf(c);
    const text = c.req.param('index') ?? '';
    const index = /^\d{1,3}$/.test(text) ? Number(text) : undefined;
    const isPlain = checkField(metadataQuery, 'metadata', c.req.query('metadata'), metadataExpected) === 'false';
    // The object store has only the file with metadata.
    const mayRedirect = !isPlain && followsRedirects(c);
    // Read both in parallel: the request has the cache lifetime, or the reason why there is no image.
    const [request, output] = await Promise.all([
      findRequest(withStore, id, c.get('owner')),
      index === undefined
        ? undefined
        : withStore((store) => (mayRedirect ? linkOrRead(store, id, index) : readOutput(store, id, index))),
    ]);
    if (output === undefined || request.kind !== imageKind.id) throw absence(request, index);
    if (typeof output === 'string') return c.redirect(output, 307);
    const { contentType } = output.info;
    const data = isPlain ? withoutMetadata({ ...output, contentType }).data : output.data;
    return answerFile(c, { data, contentType, cacheControl: cacheControl(request, clock) });
  },
};

/**
 * Returns true if the client may be redirected to another origin. A page's CSP may forbid it: pages send both headers
 * with another mode; Node's fetch sends `Sec-Fetch-Mode` only.
 */
function followsRedirects(c: ApiCall): boolean {
  return c.req.header('sec-fetch-site') === undefined || c.req.header('sec-fetch-mode') === 'navigate';
}

/** Returns a signed URL of the image if clients can reach the object store, else the image. */
async function linkOrRead(store: StoreConnection, id: string, index: number) {
  return (await linkOutput(store, id, { index, seconds: linkSeconds })) ?? readOutput(store, id, index);
}

/** Returns Cache-Control: no caching while the request is open, since another attempt may write the image again. */
function cacheControl({ expiresAtMs }: RequestSnapshot, clock: Clock): string {
  if (expiresAtMs === undefined) return 'private, no-cache';
  return `private, max-age=${Math.max(0, Math.floor((expiresAtMs - clock.now()) / 1000))}`;
}

function absence({ id, kind, outputCount, state }: RequestSnapshot, index: number | undefined): ApiError {
  if (kind !== imageKind.id) return notFound(`Request ${id} has no images: it is of another kind.`);
  if (index === undefined || index >= outputCount) return noSuchImage(id, outputCount);
  if (isTerminalState(state)) return notFound(`Request ${id} has ended (${state}) without image ${index}.`);
  return notReady(id, index, state);
}

function notFound(message: string): ApiError {
  return new ApiError(404, 'image_not_found', message);
}

function noSuchImage(id: string, count: number): ApiError {
  return notFound(`Request ${id} has no such image, expected 0${count === 1 ? '' : ` to ${count - 1}`}.`);
}

function notReady(id: string, index: number, state: string): ApiError {
  const message = `Image ${index} of request ${id} is not ready yet: the request is ${state}.`;
  return new ApiError(409, 'image_not_ready', message, { headers: { 'Retry-After': '1' } });
}
