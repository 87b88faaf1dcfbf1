import type { ServerResponse } from 'node:http';
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import type { Context } from 'hono';
import type { ApiEnv } from '../http/api-env.ts';
import type { ApiMetrics } from '../http/api-metrics.ts';
import { routeOf } from '../http/measure-requests.ts';
import { type FollowDeps, tailEvents, type TailItem, type TailOptions } from './tail-events.ts';

const encoder = new TextEncoder();

/** Thrown by frames that end a stream before its end. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream';
}

export interface EventSource {
  /** Text of server-sent events. `gone` is aborted when the reader has gone. */
  frames: (gone: AbortSignal) => AsyncGenerator<string, void>;
  /** For clients that take any end for a good one: a stream that cannot go on breaks its connection off. */
  breaksOff?: boolean;
}

/** Answers with server-sent events. */
export type StreamEvents = (c: Context<ApiEnv>, source: EventSource) => Response;

/**
 * The next frame is fetched when the one before has been taken, so that a slow reader holds one in memory; a reader that
 * goes ends the frames.
 */
export function createEventStreams({ eventStreams }: Pick<ApiMetrics, 'eventStreams'>, log: Logger): StreamEvents {
  return (c, { frames, breaksOff = false }) => {
    countWhileOpen(c, eventStreams);
    const gone = new AbortController();
    const source = frames(gone.signal);
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const next = await source.next();
            if (gone.signal.aborted) return;
            if (next.done) controller.close();
            else controller.enqueue(encoder.encode(next.value));
          } catch (error) {
            if (gone.signal.aborted) return;
            if (!isExpected(error))
              log.error({ request_id: c.get('requestId'), error: String(error) }, 'a stream failed');
            // A closed stream without an end sends its reader back to where it was.
            if (breaksOff) controller.error(error);
            else controller.close();
          }
        },
        async cancel() {
          gone.abort();
          await source.return();
        },
      },
      { highWaterMark: 0 },
    );
    return c.body(stream, 200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      // nginx would hold events back until its buffer is full.
      'X-Accel-Buffering': 'no',
    });
  };
}

/** What goes over the wire for an item; nothing for `''`. */
export type FrameOf = (item: TailItem) => Promise<string>;

/** The events of a request, each as `frameOf` has it. */
export async function* tailFrames(
  deps: FollowDeps,
  id: string,
  { frameOf, ...options }: TailOptions & { frameOf: FrameOf },
): AsyncGenerator<string, void> {
  for await (const item of tailEvents(deps, id, options)) {
    const text = await frameOf(item);
    if (text !== '') yield text;
  }
}

function countWhileOpen(c: Context<ApiEnv>, eventStreams: ApiMetrics['eventStreams']): void {
  // There is none when the app is called without a server.
  const connection = (c.env as { outgoing?: ServerResponse } | undefined)?.outgoing;
  if (connection === undefined || connection.closed) return;
  const route = routeOf(c);
  eventStreams.inc({ route });
  connection.once('close', () => eventStreams.dec({ route }));
}

function isExpected(error: unknown): boolean {
  return error instanceof BrokenStream || (DarkroomError.isInstance(error) && error.code === 'unavailable');
}
