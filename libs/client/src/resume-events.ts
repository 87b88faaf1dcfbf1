import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { ImageInfo } from './answers.ts';
import { ClientError, isPassing } from './client-error.ts';
import { backOff, connectionFailed, readParts, requestPath, send } from './http.ts';
import type { Call } from './options.ts';
import type { ImageEvent, RequestEvent, TextEvent } from './stream-event.ts';

/** A part of a picture, as `image` events bring it. */
export interface ChunkEvent extends ImageInfo, Pick<ImageEvent, 'type' | 'id' | 'request_id' | 'timestamp'> {
  /** From 0. */
  chunk_index: number;
  total_chunks: number;
  /** Null when the bytes were gone when the event was read. */
  b64: string | null;
}

/** A text's end as the API sends it: the text itself came before. */
export type TextEndEvent = Omit<TextEvent, 'text'>;

/** An event as the API sends it: pictures in chunks, and texts as workers wrote them, a piece of one twice perhaps. */
export type SentEvent = Exclude<RequestEvent, ImageEvent | TextEvent> | ChunkEvent | TextEndEvent;

const endTypes: ReadonlySet<string> = new Set<SentEvent['type']>(['succeeded', 'failed', 'canceled', 'expired']);
const types: ReadonlySet<string> = new Set<SentEvent['type']>([
  'queued',
  'started',
  'loading',
  'progress',
  'image',
  'delta',
  'snapshot',
  'reset',
  'text',
  'succeeded',
  'failed',
  'canceled',
  'expired',
]);

/**
 * The events of a request in order, those after the event `after` or all, each once, over as many connections as it
 * takes. Ends after `[DONE]`. Throws {@link ClientError} for what does not pass, or when `maxRetries` connections in a
 * row brought nothing.
 */
export async function* resumeEvents(
  call: Call,
  id: string,
  after: string | undefined,
): AsyncGenerator<SentEvent, void> {
  let last = after;
  let isEnded = false;
  let retryMs: number | undefined;
  // Connections in a row that brought nothing.
  let failures = 0;
  const parserOptions: ParserOptions = {
    onRetry: (ms) => (retryMs = ms),
    // Heartbeats come every 15 s, so silence is a connection whose other end is gone without a word.
    onComment: () => (failures = 0),
  };
  for (;;) {
    let error = connectionFailed(`the events of ${id} were cut`);
    try {
      for await (const message of readMessages(call, await openEvents(call, id, last), parserOptions)) {
        if (message.data === '[DONE]') return;
        // A server or proxy that does not know where we were begins anew.
        if (message.id === undefined || (last !== undefined && !isAfter(message.id, last))) continue;
        const event = eventOf(message, message.id);
        last = message.id;
        failures = 0;
        if (event === undefined) continue;
        isEnded = endTypes.has(event.type);
        yield event;
      }
    } catch (caught) {
      if (!isPassing(caught)) throw caught;
      error = caught;
    }
    // Nothing follows the end, so nothing is lost with the rest.
    if (isEnded) return;
    if (failures >= call.maxRetries) throw error;
    await backOff(call, { failures, retryMs, retryAfterS: error.retryAfterS });
    failures++;
  }
}

async function openEvents(call: Call, id: string, last: string | undefined): Promise<ReadableStream<Uint8Array>> {
  const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
  const path = `${requestPath(id)}/events`;
  const response = await send(call, path, { headers });
  const type = response.headers.get('content-type') ?? 'nothing';
  if (response.body !== null && type.startsWith('text/event-stream')) return response.body;
  response.body?.cancel().catch(() => {});
  const message = `GET ${path} was answered with ${type}, expected text/event-stream`;
  throw new ClientError({ status: response.status, code: 'invalid_answer', message });
}

type ParserOptions = Pick<Parameters<typeof createParser>[0], 'onRetry' | 'onComment'>;

/** Ends when the connection does, in order or not: a message without its empty line is not one. */
async function* readMessages(
  call: Call,
  body: ReadableStream<Uint8Array>,
  options: ParserOptions,
): AsyncGenerator<EventSourceMessage, void> {
  const decoder = new TextDecoder();
  const messages: EventSourceMessage[] = [];
  const parser = createParser({ ...options, onEvent: (message) => messages.push(message) });
  for await (const bytes of readParts(call, body)) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* messages.splice(0);
  }
}

/** Whether the event `id` comes after `last`. Ids are those of Redis streams, `<sequence>-<number>` or `<sequence>`. */
function isAfter(id: string, last: string): boolean {
  const [sequence = 0, number = 0] = id.split('-').map(Number);
  const [lastSequence = 0, lastNumber = 0] = last.split('-').map(Number);
  return sequence > lastSequence || (sequence === lastSequence && number > lastNumber);
}

/** Undefined for an event that this version does not know: later ones of the API may bring others. */
function eventOf({ event: type = '', data }: EventSourceMessage, id: string): SentEvent | undefined {
  if (!types.has(type)) return undefined;
  try {
    return { ...(JSON.parse(data) as object), type, id } as SentEvent;
  } catch (error) {
    throw connectionFailed(`event ${id} is not JSON`, error);
  }
}
