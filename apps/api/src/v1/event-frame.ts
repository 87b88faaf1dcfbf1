import { isoTime, type RequestEvent, type RequestStatus } from '@darkroom/core';
import type { EventView, Kinds } from '@darkroom/kinds';
import { readOutputChunk } from '@darkroom/store';
import type { TailItem } from '../follow/tail-events.ts';
import type { AskStore } from '../server/store-guard.ts';

export interface EventFrameDeps {
  askStore: AskStore;
  kinds: Kinds;
}

/** Milliseconds until a reader comes back whose API process stops. */
const retryMs = 1000;

/** What goes over the wire for an item. Fetches what the log does not hold itself: a chunk's bytes. */
export async function eventFrame(
  deps: EventFrameDeps,
  request: Pick<RequestStatus, 'id' | 'kind'>,
  item: TailItem,
): Promise<string> {
  if (item === 'heartbeat') return ': heartbeat\n\n';
  if (item === 'draining') return `retry: ${retryMs}\n\n`;
  if (item === 'done') return 'data: [DONE]\n\n';
  const { name, data } = await viewOf(deps, request, item);
  const line = { request_id: request.id, timestamp: isoTime(item.timestampMs), ...data };
  // JSON has no line breaks of its own.
  return `id: ${item.sequence}-0\nevent: ${name}\ndata: ${JSON.stringify(line)}\n\n`;
}

async function viewOf(
  { askStore, kinds }: EventFrameDeps,
  { id, kind: kindId }: Pick<RequestStatus, 'id' | 'kind'>,
  event: RequestEvent,
): Promise<EventView> {
  const kind = kinds.of(kindId);
  const plain = (data: object = {}): EventView => ({ name: event.type, data });
  switch (event.type) {
    case 'queued':
      return plain({ queue_position: event.position, attempt: event.attempt });
    case 'started':
      return plain({ attempt: event.attempt });
    case 'succeeded':
      return plain(kind?.resultView(id, event.outputs));
    case 'failed':
      return plain({ error: event.error });
    case 'canceled':
    case 'expired':
      return plain();
    case 'output': {
      const { output, chunkIndex } = event;
      if (kind?.outputs !== 'bytes') return kind?.eventView(id, event) ?? plain();
      return kind.eventView(id, event, await askStore((store) => readOutputChunk(store, id, output.index, chunkIndex)));
    }
    case 'progress':
    case 'preview':
    case 'delta':
    case 'snapshot':
    case 'reset':
      return kind?.eventView(id, event) ?? plain();
  }
}
