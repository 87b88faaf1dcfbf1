import { imageView, isoTime, type OutputInfo, progressView, promptCutView, type RequestEvent } from '@darkroom/core';
import { readOutputChunk } from '@darkroom/store';
import type { ApiContext } from '../context.ts';

/** An event as it goes over the wire: the name after `event:` and the JSON after `data:`. */
export interface WireEvent {
  name: string;
  data: Readonly<Record<string, unknown>>;
}

/** Fetches what the log does not hold itself: a chunk's bytes. */
export async function toWireEvent(context: ApiContext, id: string, event: RequestEvent): Promise<WireEvent> {
  const common = { request_id: id, timestamp: isoTime(event.timestampMs) };
  switch (event.type) {
    case 'queued':
      return { name: 'queued', data: { ...common, queue_position: event.position, attempt: event.attempt } };
    case 'started':
      return { name: 'started', data: { ...common, attempt: event.attempt } };
    case 'progress':
    case 'preview':
      return { name: 'progress', data: { ...common, ...progressData(event) } };
    case 'output': {
      const chunk = await context.askStore((store) => readOutputChunk(store, id, event.output.index, event.chunkIndex));
      return { name: 'image', data: { ...common, ...chunkData(id, event.output, event.chunkIndex, chunk) } };
    }
    case 'succeeded': {
      const images = event.outputs.map((output) => imageView(id, output));
      return { name: 'succeeded', data: { ...common, ...promptCutView(event.outputs), images } };
    }
    case 'failed':
      return { name: 'failed', data: { ...common, error: event.error } };
    case 'delta':
    case 'snapshot':
    case 'reset':
    case 'canceled':
    case 'expired':
      return { name: event.type, data: common };
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
