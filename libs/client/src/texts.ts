import type { RequestView } from './answers.ts';
import { ClientError } from './client-error.ts';
import { requestPath, retrying, sendForJson } from './http.ts';
import type { Call } from './options.ts';
import type { DeltaEvent, ResetEvent, SnapshotEvent, TextEndEvent } from './api-types.ts';
import type { TextEvent } from './stream-event.ts';
import { textAfter } from './output-text.ts';

/** The state of a text, built from its events. */
interface OpenText {
  /** Offset of `text`: 0, unless the stream started in the middle. */
  from: number;
  /** The current text, including a block that is being written. */
  text: string;
  /** Offset up to which the text was yielded as deltas; initially the stream's start. */
  yieldedTo: number;
}

type TextChunkEvent = DeltaEvent | SnapshotEvent | ResetEvent;

/**
 * Converts a request's text events to those that `stream` yields. Works with offsets, because a worker that takes over
 * writes earlier text again, and a compacted log starts with a snapshot of the complete text.
 */
export function createTextReader(call: Call, requestId: string) {
  const texts = new Map<number, OpenText>();
  const ended = new Set<number>();
  return {
    /** Yields each chunk once; text before an event's offset is unchanged. */
    *chunks(event: TextChunkEvent): Generator<TextChunkEvent, void> {
      const { index, offset } = event;
      const open = texts.get(index) ?? { from: offset, text: '', yieldedTo: offset };
      texts.set(index, open);
      apply(open, event);
      if (event.type === 'reset') {
        open.yieldedTo = Math.min(open.yieldedTo, offset);
        return yield event;
      }
      yield* newDeltas(open, event, event.type === 'delta' ? endOf(open) : offset);
      if (event.type === 'snapshot' && endOf(open) > open.yieldedTo)
        yield {
          ...withoutMetadata(event, open.yieldedTo === offset),
          offset: open.yieldedTo,
          text: after(open, open.yieldedTo),
        };
    },
    /** Yields the rest of the text, then the complete text; fetches it if the stream missed its first part. */
    async *end(event: TextEndEvent): AsyncGenerator<DeltaEvent | TextEvent, void> {
      const { index } = event;
      if (ended.has(index)) return;
      ended.add(index);
      const open = texts.get(index);
      if (open !== undefined) yield* newDeltas(open, { ...common(event), index }, endOf(open));
      const isComplete = open?.from === 0 && new TextEncoder().encode(open.text).length === event.bytes;
      const text = isComplete ? open.text : await fetchText(call, requestId, index);
      if (text !== undefined) yield { ...event, text };
    },
  };
}

function endOf({ from, text }: OpenText): number {
  return from + text.length;
}

function after({ from, text }: OpenText, offset: number): string {
  return text.slice(Math.max(0, offset - from));
}

function apply(open: OpenText, event: TextChunkEvent): void {
  if (event.offset < open.from) Object.assign(open, { from: event.offset, text: '' });
  open.text = textAfter(open.text, { ...event, offset: event.offset - open.from });
}

/**
 * Yields final text that was not yielded before. Token metadata is included only if it belongs to exactly this chunk.
 */
function* newDeltas(
  open: OpenText,
  event: Pick<DeltaEvent, 'id' | 'request_id' | 'timestamp' | 'index'> & Partial<DeltaEvent | SnapshotEvent>,
  until: number,
): Generator<DeltaEvent, void> {
  const { yieldedTo } = open;
  if (until <= yieldedTo) return;
  open.yieldedTo = until;
  const isExactChunk = event.type === 'delta' && event.offset === yieldedTo;
  const text = after(open, yieldedTo).slice(0, until - yieldedTo);
  yield { ...withoutMetadata(event, isExactChunk), type: 'delta', offset: yieldedTo, text };
}

function withoutMetadata<Event extends Partial<DeltaEvent | SnapshotEvent>>(
  event: Event,
  isExactChunk: boolean,
): Event {
  if (isExactChunk) return event;
  const { token_ids: _ids, nfe: _calls, logprobs: _logprobs, ...others } = event;
  return others as Event;
}

function common({ id, request_id, timestamp }: TextEndEvent): Pick<DeltaEvent, 'id' | 'request_id' | 'timestamp'> {
  return { id, request_id, timestamp };
}

/** Fetches a text. Returns undefined if it has expired. */
async function fetchText(call: Call, id: string, index: number): Promise<string | undefined> {
  try {
    const { body } = await retrying(call, () => sendForJson<RequestView>(call, requestPath(id)));
    return body.texts?.[index]?.text;
  } catch (error) {
    if (error instanceof ClientError && (error.status === 404 || error.status === 410)) return undefined;
    throw error;
  }
}
