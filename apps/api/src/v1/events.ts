import { invalidValue, isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import { requestEvents, type StreamEvents } from '../follow/stream-events.ts';
import type { FollowDeps } from '../follow/tail-events.ts';
import type { ApiEnv } from '../http/api-env.ts';
import { invalidFields } from '../http/api-error.ts';
import { addRoute, type Api, errorAnswer, requestErrors } from '../http/api-route.ts';
import { eventFrame, type EventFrameDeps } from './event-frame.ts';

export function addEventsRoute(api: Api, deps: FollowDeps & EventFrameDeps & { streamEvents: StreamEvents }): void {
  addRoute(api, eventsRoute, async (c) => {
    const id = requestIdOf(c);
    const after = positionOf(c);
    return deps.streamEvents(c, async () => {
      const request = await findRequest(deps.askStore, id, c.get('owner'));
      return requestEvents(deps, id, {
        after,
        isEnded: isTerminalState(request.state),
        frameOf: (item) => eventFrame(deps, request, item),
      });
    });
  });
}

/** Empty is from the first, as in a browser that has seen none. */
const position = z.string().regex(/^(?:\d{1,13}(?:-0)?)?$/);

/** After which event to go on. A browser that reconnects repeats the URL it began with and adds the header, which is newer. */
export function positionOf(c: Context<ApiEnv>): number {
  const after = checked('after', c.req.query('after'));
  return checked('Last-Event-ID', c.req.header('last-event-id')) ?? after ?? 0;
}

function checked(name: string, text = ''): number | undefined {
  if (!position.safeParse(text).success)
    throw invalidFields([invalidValue(name, text, 'the id of an event, such as 7-0')]);
  return text === '' ? undefined : Number.parseInt(text, 10);
}

const eventsRoute = {
  method: 'get' as const,
  path: '/v1/predict/{id}/events',
  summary: 'Follow a request as server-sent events',
  description: `All events of the request from the first, or those after \`Last-Event-ID\`, and new ones as they come; on any
replica, and after the end until the request expires. Every event's data is JSON with \`request_id\` and \`timestamp\`:

| event | further data |
| --- | --- |
| \`queued\` | \`queue_position\`, \`attempt\` |
| \`started\` | \`attempt\` |
| \`progress\` | \`index\`, \`step\`, \`total_steps\`, \`progress\` (0 to 1), \`preview\` (a data URL, at some steps, until the request has ended) |
| \`image\` | \`index\`, \`url\`, \`seed\`, \`width\`, \`height\`, \`content_type\`, \`bytes\`, \`chunk_id\`, \`chunk_index\`, \`total_chunks\`, \`is_chunked\`, \`is_final\`, \`b64\` (join the chunks of one index) |
| \`succeeded\` | \`prompt_tokens_cut\`, \`negative_prompt_tokens_cut\`, \`images\`: as in the request |
| \`failed\` | \`error\`: \`code\`, \`message\` |
| \`canceled\`, \`expired\` | |

One of the last four ends every request; \`data: [DONE]\` follows it. A comment comes every 15 s. A stream that ends without
\`[DONE]\` was cut: come back with the last id. Disconnecting cancels nothing. Whoever asks for what is after the last event of a request that has ended gets \`[DONE]\` alone.`,
  request: {
    params: z.object({ id: z.string() }),
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
    429: errorAnswer(
      'The key has as many open event streams as it may.',
      {
        message: 'This key has 5000 open event streams here, which is all it may have at once; close one.',
        code: 'too_many_streams',
      },
      true,
    ),
    400: errorAnswer('The position is wrong.', {
      message: 'Last-Event-ID is "abc", expected the id of an event, such as 7-0',
      code: 'invalid_value',
      param: 'Last-Event-ID',
    }),
  },
};
