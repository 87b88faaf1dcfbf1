import { isoTime, type StoredEvent, type RequestSnapshot } from '@darkroom/core';
import type { EventView } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import { readChunk, withPreview } from '../follow/event-bytes.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { type EventSource, ExpiredStream, requestEvents, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField, invalidField, tooManyStreams } from '../http/api-error.ts';
import { describeErrorAnswer, requestErrors, type Route } from '../openapi/api-route.ts';
import { pathPrefixFor } from '../http/public-url.ts';
import { imageLinks } from '../auth/image-links.ts';

/** Event id; empty, as browsers send before the first event, means from the start. */
const position = z.string().regex(/^(?:\d{1,13}(?:-0)?)?$/);
const positionExpected = 'the id of an event, such as 7-0';

export const eventsRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/events',
  operationId: 'streamEvents',
  tag: 'Requests',
  summary: 'Follow a request as server-sent events',
  description: `All events of the request from the first, or those after \`Last-Event-ID\`, and new ones as they come; on any
replica, and after the end until the request expires. The schema \`RequestEvent\` lists the events: its \`type\` and \`id\` are the fields \`event\` and
\`id\` of the frame, and its other properties are the JSON of \`data\`.

While a client follows the request, and for some seconds after, every \`progress\` is recorded, at most ten per second; otherwise one per second, and those with a preview.

One of \`succeeded\`, \`failed\`, \`canceled\` and \`expired\` ends every request; \`data: [DONE]\` follows it. A comment is sent every 15 s as a heartbeat. A stream that ends without
\`[DONE]\` was cut: reconnect with the last id to continue, or to get a 410 if the request has expired. Disconnecting does not cancel the request. After the last event of an ended request the stream is \`[DONE]\` alone; a client that is ahead of the log after a failover of Redis gets the last event again.`,
  request: {
    query: z.object({
      after: position.optional().openapi({ description: 'Like Last-Event-ID, for clients that cannot set headers.' }),
    }),
    headers: z.object({
      'last-event-id': position
        .optional()
        .openapi({ description: 'The id of the last event seen, `7-0` or `7`.', example: '7-0' }),
    }),
  },
  responses: {
    ...requestErrors,
    200: {
      description: 'The events.',
      content: {
        // No schema: OpenAPI 3.1 has none for items of a stream; tools would validate the whole stream against it.
        'text/event-stream': {
          example:
            'id: 3-0\nevent: progress\ndata: {"request_id":"…","timestamp":"2026-11-21T01:40:46.000Z","index":0,"step":1,"total_steps":12,"progress":0.083}\n\n',
        },
      },
    },
    429: describeErrorAnswer('The key has reached its limit of open event streams.', tooManyStreams(5000)),
    400: describeErrorAnswer('The position is invalid.', invalidField('Last-Event-ID', 'abc', positionExpected)),
  },
  handle: (c, context) =>
    streamEvents(c, context, () =>
      followFrom(context, requestIdOf(c), { owner: c.get('owner'), pathPrefix: pathPrefixFor(c) }, positionOf(c)),
    ),
};

/** Returns the events after a position. Takes no `c`: streams are long-lived and must not keep the call in memory. */
async function followFrom(
  context: ApiContext,
  id: string,
  { owner, pathPrefix }: Pick<Followed, 'owner' | 'pathPrefix'>,
  after: number,
): Promise<EventSource> {
  const { state, kind, expiresAtMs } = await findRequest(context.withStore, id, owner);
  const framesOf = (event: StoredEvent) => frameOf(context, { id, kind, owner, expiresAtMs, pathPrefix }, event);
  return requestEvents(context, { id, state }, { after, framesOf });
}

type Followed = Pick<RequestSnapshot, 'id' | 'kind' | 'owner' | 'expiresAtMs'> & { pathPrefix: string };

async function frameOf(context: ApiContext, request: Followed, event: StoredEvent): Promise<string[]> {
  const { name, data } = await viewOf(context, request, event);
  const line = { request_id: request.id, timestamp: isoTime(event.timestampMs), ...data };
  return [sseFrame({ id: `${event.sequence}-0`, event: name, data: line })];
}

/** Returns the last event seen. A reconnecting browser repeats its URL and adds the header, so the header wins. */
export function positionOf(c: ApiCall): number {
  const after = checkField(position, 'after', c.req.query('after') ?? '', positionExpected);
  const last = checkField(position, 'Last-Event-ID', c.req.header('last-event-id') ?? '', positionExpected);
  return Number.parseInt(last || after || '0', 10);
}

/** Returns the data of an event; loads the bytes of images, which are not in the log. */
async function viewOf(
  { withStore, kinds }: ApiContext,
  { id, kind: kindId, owner, expiresAtMs, pathPrefix }: Followed,
  event: StoredEvent,
): Promise<EventView> {
  const kind = kinds.of(kindId);
  const plain = (data: object = {}): EventView => ({ name: event.type, data });
  const linksOf = () => imageLinks(withStore, { owner, fromMs: event.timestampMs, expiresAtMs, pathPrefix });
  switch (event.type) {
    case 'queued':
      return plain({ queue_position: event.position, attempt: event.attempt });
    case 'started':
      return plain({ attempt: event.attempt });
    case 'loading':
      return plain(event.expectedMs === undefined ? {} : { expected_seconds: event.expectedMs / 1000 });
    case 'succeeded':
      return plain(kind?.resultView(id, event.outputs, { linkOf: await linksOf() }));
    case 'failed':
      return plain({ error: event.error });
    case 'canceled':
    case 'expired':
      return plain();
    case 'output': {
      if (kind?.outputs !== 'bytes') return kind?.eventView(id, event) ?? plain();
      const chunk = await readChunk(withStore, id, event);
      // The bytes may expire a moment before the log.
      if (chunk === undefined) throw new ExpiredStream();
      return kind.eventView(id, event, { chunk, linkOf: await linksOf() });
    }
    case 'preview':
      return kind?.eventView(id, await withPreview(withStore, id, event)) ?? plain();
    case 'progress':
    case 'delta':
    case 'snapshot':
    case 'reset':
      return kind?.eventView(id, event) ?? plain();
  }
}
