import { imageKind, imageAttachments } from '@darkroom/kinds';
import { readAttachment } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { answerFile, fileHeaders, rangeOutside } from '../http/answer-file.ts';
import { ApiError } from '../http/api-error.ts';
import { describeErrorAnswer, exampleId, requestErrors, type Route } from '../openapi/api-route.ts';

const file = { schema: { type: 'string' as const, format: 'binary' } };

export const inputRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/inputs/{name}',
  summary: 'Get an input image of a request',
  description:
    'The input image, resized to the output size: `image` in RGB, `mask` in grey, white where to paint. Stored as long as the prompt.',
  params: { name: z.enum(imageAttachments) },
  request: { headers: fileHeaders },
  responses: {
    ...requestErrors,
    200: { description: 'The image.', content: { 'image/png': file } },
    206: { description: 'The part that `Range` selects.', content: { 'image/png': file } },
    304: { description: 'The image has not changed since `If-None-Match`.' },
    416: describeErrorAnswer('`Range` selects no byte of the file.', rangeOutside(11_954)),
    404: describeErrorAnswer('No such request, or no such image, or it has expired.', noSuchInput(exampleId, 'mask')),
  },
  async handle(c, { withStore }) {
    const id = requestIdOf(c);
    const name = c.req.param('name') ?? '';
    const [request, data] = await Promise.all([
      findRequest(withStore, id, c.get('owner')),
      withStore((store) => readAttachment(store, id, name)),
    ]);
    if (data === undefined || request.kind !== imageKind.id) throw noSuchInput(id, name);
    return answerFile(c, { data, contentType: 'image/png', cacheControl: 'private, no-cache' });
  },
};

function noSuchInput(id: string, name: string): ApiError {
  const expected = imageAttachments.join(' or ');
  const message = `Request ${id} has no input ${JSON.stringify(name)}, expected ${expected} of a request that has one and whose prompt is still stored.`;
  return new ApiError(404, 'input_not_found', message);
}
