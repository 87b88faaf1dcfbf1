import { isoTime, type RequestEvent, type RequestStatus } from '@darkroom/core';
import type { EventView } from '@darkroom/kinds';
import { readOutputChunk } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import { withPreview } from '../follow/with-preview.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { type EventSource, OverdueStream, requestEvents, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField, invalidField, tooManyStreams } from '../http/api-error.ts';
import { errorAnswer, requestErrors, type Route } from '../http/api-route.ts';
import { pictureLinks } from '../http/urls.ts';

/** Empty is from the first, as in a browser that has seen none. */
const position = z.string().regex(/^(?:\d{1,13}(?:-0)?)?$/);
const positionExpected = 'the id of an event, such as 7-0';

export const eventsRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}/events',
  summary: 'Follow a request as server-sent events',
  description: `All events of the request from the first, or those after \`Last-Event-ID\`, and new ones as they come; on any
replica, and after the end until the request expires. Every event's data is JSON with \`request_id\` and \`timestamp\`:

| event | further data |
| --- | --- |
| \`queued\` | \`queue_position\`, \`attempt\` |
| \`started\` | \`attempt\` |
| \`progress\` | \`index\`; of pictures \`step\`, \`total_steps\`, \`progress\` (0 to 1), \`preview\` (a data URL, at some steps, until the request has ended); of texts, now and then, \`tokens\`, \`max_tokens\` |
| \`image\` | \`index\`, \`url\`, \`seed\`, \`width\`, \`height\`, \`content_type\`, \`bytes\`, \`chunk_id\`, \`chunk_index\`, \`total_chunks\`, \`is_chunked\`, \`is_final\`, \`b64\` (join the chunks of one index) |
| \`delta\` | text that was added: \`index\`, \`offset\` (UTF-16 code units before it), \`text\`, \`token_ids\`, \`logprobs\` |
| \`snapshot\` | what stands from \`offset\` on, in place of all that stood there: \`index\`, \`offset\`, \`text\` (\`░\` for what is not known yet), \`token_ids\`, of block diffusion \`nfe\` (calls of the model so far) |
| \`text\` | a text is finished: \`index\`, \`bytes\`, \`finish_reason\`, \`stop\`, \`prompt_tokens\`, \`completion_tokens\`, \`cached_tokens\`, \`calls\` |
| \`succeeded\` | \`prompt_tokens_cut\`, \`negative_prompt_tokens_cut\`, \`images\`; of texts \`usage\`, \`finish_reasons\`: as in the request |
| \`failed\` | \`error\`: \`code\`, \`message\` |
| \`canceled\`, \`expired\` | |

\`progress\` comes as it is made, ten times a second at most, while somebody follows, and for some seconds after; of other times there is that of each second, and what had a preview.

One of the last four ends every request; \`data: [DONE]\` follows it. A comment comes every 15 s. A stream that ends without
\`[DONE]\` was cut: come back with the last id, to go on or to be told (410) that its time is over. Disconnecting cancels nothing. Whoever asks for what is after the last event of a request that has ended gets \`[DONE]\` alone; whoever has seen more than Redis still has after a failover gets the last event again.`,
  request: {
    query: z.object({
      after: position.optional().openapi({ description: 'As Last-Event-ID, for clients that cannot set headers.' }),
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
        // Without a schema: tools hold each event against it, and OpenAPI 3.1 has no other for the items of a stream.
        'text/event-stream': {
          example:
            'id: 3-0\nevent: progress\ndata: {"request_id":"…","timestamp":"2026-11-21T01:40:46.000Z","index":0,"step":1,"total_steps":12,"progress":0.083}\n\n',
        },
      },
    },
    429: errorAnswer('The key has as many open event streams as it may.', tooManyStreams(5000)),
    400: errorAnswer('The position is wrong.', invalidField('Last-Event-ID', 'abc', positionExpected)),
  },
  handle: (c, context) =>
    streamEvents(c, context, () => followFrom(context, requestIdOf(c), c.get('owner'), positionOf(c))),
};

/** Of all that a stream holds while it lives, the call is not a part. */
async function followFrom(context: ApiContext, id: string, owner: string, after: number): Promise<EventSource> {
  const { state, kind } = await findRequest(context.askStore, id, owner);
  const framesOf = (event: RequestEvent) => frameOf(context, { id, kind, owner }, event);
  return requestEvents(context, { id, state }, { after, framesOf });
}

type Followed = Pick<RequestStatus, 'id' | 'kind' | 'owner'>;

async function* frameOf(context: ApiContext, request: Followed, event: RequestEvent): AsyncGenerator<string, void> {
  const { name, data } = await viewOf(context, request, event);
  const line = { request_id: request.id, timestamp: isoTime(event.timestampMs), ...data };
  yield sseFrame({ id: `${event.sequence}-0`, event: name, data: line });
}

/** After which event to go on. A browser that reconnects repeats the URL it began with and adds the header, which is newer. */
export function positionOf(c: ApiCall): number {
  const after = checkField(position, 'after', c.req.query('after') ?? '', positionExpected);
  const last = checkField(position, 'Last-Event-ID', c.req.header('last-event-id') ?? '', positionExpected);
  return Number.parseInt(last || after || '0', 10);
}

/** Fetches what the log does not hold itself: a chunk's bytes. */
async function viewOf(
  { askStore, kinds }: ApiContext,
  { id, kind: kindId, owner }: Followed,
  event: RequestEvent,
): Promise<EventView> {
  const kind = kinds.of(kindId);
  const plain = (data: object = {}): EventView => ({ name: event.type, data });
  const linksOf = () => pictureLinks(askStore, { owner, fromMs: event.timestampMs });
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
      const chunk = await askStore((store) => readOutputChunk(store, id, event));
      // The log is there a moment longer.
      if (chunk === undefined) throw new OverdueStream();
      return kind.eventView(id, event, { chunk, linkOf: await linksOf() });
    }
    case 'preview':
      return kind?.eventView(id, await withPreview(askStore, id, event)) ?? plain();
    case 'progress':
    case 'delta':
    case 'snapshot':
    case 'reset':
      return kind?.eventView(id, event) ?? plain();
  }
}
