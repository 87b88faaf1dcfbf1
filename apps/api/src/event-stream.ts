import { DarkroomError } from '@darkroom/core';
import type { ApiContext } from './api-context.ts';
import { type FollowedItem, followRequest } from './follow-request.ts';
import { toWireEvent } from './wire-event.ts';

/** Milliseconds until a reader comes back whose API process stops. */
const retryMs = 1000;
const encoder = new TextEncoder();

export interface EventStreamOptions {
  after: number;
  isEnded: boolean;
}

/**
 * A request's events as server-sent events. The next one is fetched when the one before has been taken, so that a slow
 * reader holds one in memory; cancelling ends the subscription.
 */
export function createEventStream(
  context: ApiContext,
  id: string,
  { after, isEnded }: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const items = followRequest(context, id, { after, isEnded, signal: gone.signal });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await items.next();
          const frame = next.done ? undefined : encoder.encode(await frameOf(context, id, next.value));
          if (gone.signal.aborted) return;
          if (frame === undefined) controller.close();
          else controller.enqueue(frame);
        } catch (error) {
          await items.return();
          if (gone.signal.aborted) return;
          if (!isUnavailable(error)) context.log.error({ request_id: id, error: String(error) }, 'a stream failed');
          // A closed stream without an end sends its reader back to where it was.
          controller.close();
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

async function frameOf(context: ApiContext, id: string, item: FollowedItem): Promise<string> {
  if (item === 'heartbeat') return ': heartbeat\n\n';
  if (item === 'draining') return `retry: ${retryMs}\n\n`;
  if (item === 'done') return 'data: [DONE]\n\n';
  const { name, data } = await toWireEvent(context, id, item);
  // JSON has no line breaks of its own.
  return `id: ${item.sequence}-0\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function isUnavailable(error: unknown): boolean {
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}
