import type { ImageInfo } from './request-view.ts';
import type { ImageEvent, RequestEvent } from './request-event.ts';

/** A part of a picture, as `image` events bring it. */
export interface ChunkEvent extends ImageInfo {
  type: 'image';
  id: string;
  request_id: string;
  timestamp: string;
  /** From 0. */
  chunk_index: number;
  total_chunks: number;
  /** Null when the bytes were gone when the event was read. */
  b64: string | null;
}

/** An event as the API sends it: pictures in chunks. */
export type WireEvent = Exclude<RequestEvent, ImageEvent> | ChunkEvent;

const types: ReadonlySet<string> = new Set<WireEvent['type']>([
  'queued',
  'started',
  'progress',
  'image',
  'succeeded',
  'failed',
  'canceled',
  'expired',
]);

/** Whether this version of the client knows the event; later ones of the API may bring others. */
export function isWireEventType(type: string | undefined): type is WireEvent['type'] {
  return type !== undefined && types.has(type);
}

/** Whether nothing follows. */
export function isEnd({ type }: WireEvent): boolean {
  return type === 'succeeded' || type === 'failed' || type === 'canceled' || type === 'expired';
}
