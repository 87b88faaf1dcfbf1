import { readAttachment } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { answerFile, fileHeaders, rangeOutside } from '../http/answer-file.ts';
import { ApiError } from '../http/api-error.ts';
import { describeErrorAnswer, exampleId, requestErrors, type Route } from '../openapi/api-route.ts';

const namePattern = /^(?:image(?:-\d{1,2})?|mask)$/;

const file = { schema: { type: 'string' as const, format: 'binary' } };

export const inputRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/inputs/{name}',
  operationId: 'getInputImage',
  tag: 'Images',
  summary: 'Get an input image of a request',
  description:
    'An input image as the model gets it: `image` and `mask` of an image request have the output size, the mask is grey and white where to paint; `image-0`, `image-1` and so on are the images of messages. Stored as long as the prompt.',
  params: { name: z.string().regex(namePattern).openapi({ example: 'image' }) },
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
    const read = () => withStore((store) => readAttachment(store, id, name));
    const isName = namePattern.test(name);
    const [, data] = await Promise.all([findRequest(withStore, id, c.get('owner')), isName ? read() : undefined]);
    if (data === undefined) throw noSuchInput(id, name);
    return answerFile(c, { data, contentType: 'image/png', cacheControl: 'private, no-cache' });
  },
};

function noSuchInput(id: string, name: string): ApiError {
  const message = `Request ${id} has no input ${JSON.stringify(name)}, expected image, mask, image-0 or a later one of a request that has one and whose prompt is still stored.`;
  return new ApiError(404, 'input_not_found', message);
}
