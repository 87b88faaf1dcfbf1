import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { ClientError, isTemporary } from './client-error.ts';
import { backOff, connectionError, readParts, requestPath, send } from './http.ts';
import type { Call } from './options.ts';
import type { SentEvent } from './stream-event.ts';

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
 * Yields the events of a request in order, after the event `after` or all, each once, across as many connections as
 * necessary. Ends after `[DONE]`. Throws {@link ClientError} for a permanent error, or when `maxRetries` connections in
 * a row bring nothing.
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
    // Heartbeats come every 15 s: a silent connection has lost its other end.
    onComment: () => (failures = 0),
  };
  for (;;) {
    let error = connectionError(`the events of ${id} were cut`);
    try {
      for await (const message of readMessages(call, await openEvents(call, id, last), parserOptions)) {
        if (message.data === '[DONE]') return;
        // A server or proxy that ignores `Last-Event-ID` starts again from the first event.
        if (message.id === undefined || (last !== undefined && !isAfter(message.id, last))) continue;
        const event = eventOf(message, message.id);
        last = message.id;
        failures = 0;
        if (event === undefined) continue;
        isEnded = endTypes.has(event.type);
        yield event;
      }
    } catch (caught) {
      if (!isTemporary(caught)) throw caught;
      error = caught;
    }
    // No event follows a final one, so losing the rest of the connection does not matter.
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
  const message = `GET ${path} returned content type ${type}, expected text/event-stream`;
  throw new ClientError({ status: response.status, code: 'invalid_answer', message });
}

type ParserOptions = Pick<Parameters<typeof createParser>[0], 'onRetry' | 'onComment'>;

/** Yields messages until the connection ends or breaks. Incomplete messages (without an empty line) are dropped. */
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

/**
 * Returns true if the event `id` is later than `last`. Ids are those of Redis streams, `<sequence>-<number>` or
 * `<sequence>`.
 */
function isAfter(id: string, last: string): boolean {
  const [sequence = 0, number = 0] = id.split('-').map(Number);
  const [lastSequence = 0, lastNumber = 0] = last.split('-').map(Number);
  return sequence > lastSequence || (sequence === lastSequence && number > lastNumber);
}

/** Parses an event. Returns undefined for types that this version does not know: newer servers may send others. */
function eventOf({ event: type = '', data }: EventSourceMessage, id: string): SentEvent | undefined {
  if (!types.has(type)) return undefined;
  try {
    return { ...(JSON.parse(data) as object), type, id } as SentEvent;
  } catch (error) {
    throw connectionError(`event ${id} is not JSON`, error);
  }
}
