import type { RequestView } from '../answers.ts';
import { ClientError } from '../client-error.ts';
import { requestPath, retrying, sendForJson } from '../http.ts';
import type { Call } from '../options.ts';
import type { TextEndEvent } from '../resume-events.ts';
import type { DeltaEvent, ResetEvent, SnapshotEvent, TextEvent } from '../stream-event.ts';

/** A text as far as its events told of it. */
interface OpenText {
  /** Where `text` begins: 0, unless the stream began in the middle. */
  from: number;
  /** All that stands, a block that is being written included. */
  text: string;
  /** Where what was not yielded as a delta begins; of a stream that began in the middle, where it did. */
  said: number;
}

type PieceEvent = DeltaEvent | SnapshotEvent | ResetEvent;

/**
 * Makes of a request's events about texts those that `stream` yields. Everything goes by offsets: workers that take over
 * write what was written before them again, and a log that was made shorter begins with a snapshot of all that stands.
 */
export function createTextReader(call: Call, requestId: string) {
  const texts = new Map<number, OpenText>();
  const ended = new Set<number>();
  return {
    /** Each piece once; what stands before an event's offset stays. */
    *pieces(event: PieceEvent): Generator<PieceEvent, void> {
      const { index, offset } = event;
      const open = texts.get(index) ?? { from: offset, text: '', said: offset };
      texts.set(index, open);
      if (event.type === 'reset') {
        cut(open, offset);
        open.said = Math.min(open.said, offset);
        return yield event;
      }
      if (event.type === 'delta') append(open, event);
      else replace(open, event);
      yield* addedTo(open, event, event.type === 'delta' ? endOf(open) : offset);
      if (event.type === 'snapshot' && endOf(open) > open.said)
        yield { ...withoutFacts(event, open.said === offset), offset: open.said, text: after(open, open.said) };
    },
    /** What is left of the text, and then all of it; fetched, if it was not seen from its beginning. */
    async *end(event: TextEndEvent): AsyncGenerator<DeltaEvent | TextEvent, void> {
      const { index } = event;
      if (ended.has(index)) return;
      ended.add(index);
      const open = texts.get(index);
      if (open !== undefined) yield* addedTo(open, { ...common(event), index }, endOf(open));
      const isWhole = open?.from === 0 && new TextEncoder().encode(open.text).length === event.bytes;
      const text = isWhole ? open.text : await fetchText(call, requestId, index);
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

function cut(open: OpenText, offset: number): void {
  open.text = open.text.slice(0, Math.max(0, offset - open.from));
  open.from = Math.min(open.from, offset);
}

/** The first that wrote a token wrote it as it stays. */
function append(open: OpenText, { offset, text }: DeltaEvent): void {
  if (offset < open.from) replace(open, { offset, text });
  else open.text += text.slice(Math.max(0, endOf(open) - offset));
}

function replace(open: OpenText, { offset, text }: Pick<SnapshotEvent, 'offset' | 'text'>): void {
  cut(open, offset);
  open.text += text;
}

/** What stays from now on and was not said yet. The facts of a piece are of exactly that piece. */
function* addedTo(
  open: OpenText,
  event: Pick<DeltaEvent, 'id' | 'request_id' | 'timestamp' | 'index'> & Partial<DeltaEvent | SnapshotEvent>,
  until: number,
): Generator<DeltaEvent, void> {
  const { said } = open;
  if (until <= said) return;
  open.said = until;
  const isPiece = event.type === 'delta' && event.offset === said;
  const text = after(open, said).slice(0, until - said);
  yield { ...withoutFacts(event, isPiece), type: 'delta', offset: said, text };
}

function withoutFacts<Event extends Partial<DeltaEvent | SnapshotEvent>>(event: Event, isPiece: boolean): Event {
  if (isPiece) return event;
  const { token_ids: _ids, nfe: _calls, logprobs: _logprobs, ...others } = event;
  return others as Event;
}

function common({ id, request_id, timestamp }: TextEndEvent): Pick<DeltaEvent, 'id' | 'request_id' | 'timestamp'> {
  return { id, request_id, timestamp };
}

/** Undefined for a text whose time is over. */
async function fetchText(call: Call, id: string, index: number): Promise<string | undefined> {
  try {
    const { body } = await retrying(call, () => sendForJson<RequestView>(call, requestPath(id)));
    return body.texts?.[index]?.text;
  } catch (error) {
    if (error instanceof ClientError && (error.status === 404 || error.status === 410)) return undefined;
    throw error;
  }
}
