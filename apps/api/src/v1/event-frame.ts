import { imageView, isoTime, type OutputInfo, progressView, promptCutView, type RequestEvent } from '@darkroom/core';
import { readOutputChunk } from '@darkroom/store';
import type { TailItem } from '../follow/tail-events.ts';
import type { AskStore } from '../server/store-guard.ts';

/** Milliseconds until a reader comes back whose API process stops. */
const retryMs = 1000;

/** What goes over the wire for an item. Fetches what the log does not hold itself: a chunk's bytes. */
export async function eventFrame(askStore: AskStore, id: string, item: TailItem): Promise<string> {
  if (item === 'heartbeat') return ': heartbeat\n\n';
  if (item === 'draining') return `retry: ${retryMs}\n\n`;
  if (item === 'done') return 'data: [DONE]\n\n';
  const data = { request_id: id, timestamp: isoTime(item.timestampMs), ...(await dataOf(askStore, id, item)) };
  const name = wireNames[item.type] ?? item.type;
  // JSON has no line breaks of its own.
  return `id: ${item.sequence}-0\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

const wireNames: Readonly<Partial<Record<RequestEvent['type'], string>>> = { output: 'image', preview: 'progress' };

async function dataOf(askStore: AskStore, id: string, event: RequestEvent): Promise<object> {
  switch (event.type) {
    case 'queued':
      return { queue_position: event.position, attempt: event.attempt };
    case 'started':
      return { attempt: event.attempt };
    case 'progress':
    case 'preview':
      return progressData(event);
    case 'output': {
      const chunk = await askStore((store) => readOutputChunk(store, id, event.output.index, event.chunkIndex));
      return chunkData(id, event.output, event.chunkIndex, chunk);
    }
    case 'succeeded':
      return { ...promptCutView(event.outputs), images: event.outputs.map((output) => imageView(id, output)) };
    case 'failed':
      return { error: event.error };
    case 'delta':
    case 'snapshot':
    case 'reset':
    case 'canceled':
    case 'expired':
      return {};
  }
}

function progressData(event: Extract<RequestEvent, { type: 'progress' | 'preview' }>) {
  if (event.type === 'progress' || event.data === undefined) return progressView(event);
  // A data URL goes straight into an <img>.
  const preview = `data:${event.contentType};base64,${Buffer.from(event.data).toString('base64')}`;
  return { ...progressView(event), preview };
}

/** Chunks end at multiples of three bytes, so their base64 can be joined as it is. */
function chunkData(id: string, output: OutputInfo, chunkIndex: number, chunk: Buffer | undefined) {
  return {
    ...imageView(id, output),
    chunk_id: `${id}-${output.index}-${chunkIndex}`,
    chunk_index: chunkIndex,
    total_chunks: output.chunks,
    is_chunked: output.chunks > 1,
    is_final: chunkIndex === output.chunks - 1,
    // Null when the time of the pictures ends while they are read; the url answers 410 then.
    b64: chunk?.toString('base64') ?? null,
  };
}
