import { isModelId, isoTime, modelOfRequestId, requestStates } from '@darkroom/core';
import { type ListedRequest, type ListPosition, listRequests } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { imageLinks } from '../auth/image-links.ts';
import type { ApiContext } from '../context/context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField, invalidField } from '../http/api-error.ts';
import { noStore, pathPrefixFor, requestUrls } from '../http/public-url.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { requestPageSchema } from '../openapi/api-schemas.ts';

const maxLimit = 100;
const defaultLimit = 20;

const limitField = z.coerce.number().int().min(1).max(maxLimit);
const limitExpected = `a whole number from 1 to ${maxLimit}`;
const timeField = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const timeExpected = 'a time such as 2026-11-26T16:40:00Z';
const statusField = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(requestStates)).max(requestStates.length));
const statusExpected = `${requestStates.join(', ')}, or several of them separated by commas`;
const modelField = z.string().refine(isModelId);
const cursorField = z.string().transform((text, check): ListPosition => {
  const { time, id = '' } = /^(?<time>\d{1,15})\.(?<id>.{1,128})$/.exec(text)?.groups ?? {};
  if (modelOfRequestId(id) === undefined) check.addIssue({ code: 'custom' });
  return { createdAtMs: Number(time), id };
});

const query = z.object({
  limit: z
    .string()
    .optional()
    .openapi({ description: `Max. requests per page, 1 to ${maxLimit}.`, example: '20' }),
  cursor: z.string().optional().openapi({ description: '`next_cursor` of the previous page.' }),
  model: z.string().optional().openapi({ example: 'emoji-sd' }),
  status: z
    .string()
    .optional()
    .openapi({ description: 'One or more states, separated by commas.', example: 'queued,running' }),
  created_after: z.string().optional().openapi({ description: 'Earliest `created_at`.' }),
  created_before: z.string().optional().openapi({ description: 'Only requests with an earlier `created_at`.' }),
});

export const listRoute: Route = {
  method: 'get',
  path: '/v1/predict',
  operationId: 'listRequests',
  tag: 'Requests',
  summary: 'List requests',
  description: `The stored requests of the caller's key, newest first. They stay in the list as long as their results are
stored. A page examines a limited number of requests: with filters it may have fewer entries than \`limit\`, or none, although
\`next_cursor\` is set. Requests of a model that an operator deleted are listed only with \`model\`.`,
  request: { query },
  responses: {
    ...commonErrors,
    200: jsonAnswer('A page of the list.', requestPageSchema),
    400: describeErrorAnswer('The query is invalid.', invalidField('limit', '1000', limitExpected)),
  },
  async handle(c, context) {
    const owner = c.get('owner');
    const read = <Schema extends z.ZodType>(schema: Schema, field: string, expected: string) =>
      checkField(schema.optional(), field, c.req.query(field), expected);
    const options = {
      owner,
      limit: read(limitField, 'limit', limitExpected) ?? defaultLimit,
      cursor: read(cursorField, 'cursor', 'next_cursor of an earlier page'),
      model: read(modelField, 'model', 'the id of a model'),
      states: read(statusField, 'status', statusExpected) ?? [],
      fromMs: read(timeField, 'created_after', timeExpected),
      untilMs: read(timeField, 'created_before', timeExpected),
    };
    const { requests, next } = await context.withStore((store) => listRequests(store, options));
    const data = await Promise.all(requests.map((request) => summaryOf(c, context, request)));
    const nextCursor = next === undefined ? null : `${next.createdAtMs}.${next.id}`;
    return c.json({ object: 'list', data, next_cursor: nextCursor }, 200, noStore);
  },
};

async function summaryOf(c: ApiCall, { withStore, kinds, clock }: ApiContext, request: ListedRequest) {
  const { id, owner, outputs, excerpt, error, expiresAtMs } = request;
  const pathPrefix = pathPrefixFor(c);
  const kind = kinds.of(request.kind);
  const { images } = (
    kind?.outputs === 'bytes'
      ? kind.resultView(id, outputs, {
          linkOf: await imageLinks(withStore, { owner, fromMs: clock.now(), expiresAtMs, pathPrefix }),
        })
      : {}
  ) as { images?: unknown };
  return {
    request_id: id,
    kind: request.kind,
    model: request.model,
    status: request.state,
    is_canceling: request.isCanceling,
    created_at: isoTime(request.createdAtMs),
    started_at: isoTime(request.startedAtMs),
    ended_at: isoTime(request.endedAtMs),
    expires_at: isoTime(request.expiresAtMs),
    is_pinned: request.isPinned,
    ...(excerpt === undefined ? {} : { prompt: excerpt }),
    output_count: request.outputCount,
    ...(images === undefined ? {} : { images }),
    ...(error === undefined ? {} : { error }),
    urls: requestUrls(id, pathPrefix),
  };
}
