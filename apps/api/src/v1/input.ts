import { picture, pictureAttachments } from '@darkroom/kinds';
import { readAttachment } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { ApiError } from '../http/api-error.ts';
import { errorAnswer, exampleId, requestErrors, type Route } from '../http/api-route.ts';

const file = { schema: { type: 'string' as const, format: 'binary' } };

export const inputRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/inputs/{name}',
  summary: 'A picture that a request began with',
  description:
    'As it was fitted to the size that is drawn: `image` in RGB, `mask` in grey, white where it is painted anew. It is there as long as the prompt is.',
  params: { name: z.enum(pictureAttachments) },
  responses: {
    ...requestErrors,
    200: { description: 'The picture.', content: { 'image/png': file } },
    404: errorAnswer('No such request, or no such picture (any more).', noSuchInput(exampleId, 'mask')),
  },
  async handle(c, { askStore }) {
    const id = requestIdOf(c);
    const name = c.req.param('name') ?? '';
    const [request, data] = await Promise.all([
      findRequest(askStore, id, c.get('owner')),
      askStore((store) => readAttachment(store, id, name)),
    ]);
    if (data === undefined || request.kind !== picture.id) throw noSuchInput(id, name);
    return c.body(new Uint8Array(data), 200, {
      'Cache-Control': 'private, no-cache',
      'Content-Type': 'image/png',
      'Content-Length': String(data.byteLength),
      'X-Content-Type-Options': 'nosniff',
    });
  },
};

function noSuchInput(id: string, name: string): ApiError {
  const expected = pictureAttachments.join(' or ');
  const message = `Request ${id} has no input ${JSON.stringify(name)}, expected ${expected} of one that began with it and still has its prompt.`;
  return new ApiError(404, 'input_not_found', message);
}
