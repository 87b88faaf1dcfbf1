import { DarkroomError } from '@darkroom/core';
import type { Context } from 'hono';
import type { ApiContext } from '../context.ts';
import { type FollowedItem, followRequest } from './follow-request.ts';
import { toWireEvent } from '../v1/wire-event.ts';

/** Milliseconds until a reader comes back whose API process stops. */
const retryMs = 1000;
const encoder = new TextEncoder();

/** Thrown by a frame that ends the stream before its end. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream';
}

/** What goes over the wire for an item; nothing for `''`. */
export type EventFrame = (item: FollowedItem) => Promise<string>;

export interface EventStreamOptions {
  after: number;
  isEnded: boolean;
  frame?: EventFrame;
  /** For clients that take any end for a good one: a stream that cannot go on breaks its connection off. */
  breaksOff?: boolean;
}

/**
 * A request's events as server-sent events. The next one is fetched when the one before has been taken, so that a slow
 * reader holds one in memory; cancelling ends the subscription.
 */
export function createEventStream(
  context: ApiContext,
  id: string,
  { after, isEnded, frame = (item) => frameOf(context, id, item), breaksOff = false }: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const items = followRequest(context, id, { after, isEnded, signal: gone.signal });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await nextFrame(items, frame);
          if (gone.signal.aborted) return;
          if (text === undefined) controller.close();
          else controller.enqueue(encoder.encode(text));
        } catch (error) {
          await items.return();
          if (gone.signal.aborted) return;
          if (!isExpected(error)) context.log.error({ request_id: id, error: String(error) }, 'a stream failed');
          // A closed stream without an end sends its reader back to where it was.
          if (breaksOff) controller.error(error);
          else controller.close();
        }
      },
      async cancel() {
        gone.abort();
        await items.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Past the items that have no frame: a pull must bring something. */
async function nextFrame(items: AsyncGenerator<FollowedItem, void>, frame: EventFrame): Promise<string | undefined> {
  for (;;) {
    const next = await items.next();
    if (next.done) return undefined;
    const text = await frame(next.value);
    if (text !== '') return text;
  }
}

/** As the answer to `c`. */
export function streamResponse(c: Context, stream: ReadableStream<Uint8Array>): Response {
  return c.body(stream, 200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    // nginx would hold events back until its buffer is full.
    'X-Accel-Buffering': 'no',
  });
}

async function frameOf(context: ApiContext, id: string, item: FollowedItem): Promise<string> {
  if (item === 'heartbeat') return ': heartbeat\n\n';
  if (item === 'draining') return `retry: ${retryMs}\n\n`;
  if (item === 'done') return 'data: [DONE]\n\n';
  const { name, data } = await toWireEvent(context, id, item);
  // JSON has no line breaks of its own.
  return `id: ${item.sequence}-0\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function isExpected(error: unknown): boolean {
  return error instanceof BrokenStream || (DarkroomError.isInstance(error) && error.code === 'unavailable');
}
