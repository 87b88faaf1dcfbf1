import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { requestPath } from './calls.ts';
import { ClientError, isPassing } from './client-error.ts';
import { backOff, connectionFailed, readParts, send } from './http.ts';
import type { Call } from './options.ts';
import { isEnd, isKnownType, type SentEvent } from './stream-event.ts';

/** What lives longer than a connection. */
interface Position {
  /** Id of the last whole event. */
  last: string | undefined;
  /** From the server's `retry:`. */
  retryMs: number | undefined;
  /** Connections in a row that brought nothing. */
  failures: number;
  /** The last event was the end. */
  isEnded: boolean;
}

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
  const position: Position = { last: after, retryMs: undefined, failures: 0, isEnded: false };
  for (;;) {
    let error = connectionFailed(`the events of ${id} were cut`);
    try {
      if (yield* readConnection(call, id, position)) return;
    } catch (caught) {
      if (!isPassing(caught)) throw caught;
      error = caught;
    }
    // Nothing follows the end, so nothing is lost with the rest.
    if (position.isEnded) return;
    const { failures, retryMs } = position;
    if (failures >= call.maxRetries) throw error;
    await backOff(call, { failures, retryMs, retryAfterS: error.retryAfterS });
    position.failures++;
  }
}

/** One connection; true after `[DONE]`, false when it was cut. */
async function* readConnection(call: Call, id: string, position: Position): AsyncGenerator<SentEvent, boolean> {
  for await (const message of readMessages(call, await openEvents(call, id, position.last), position)) {
    if (message.data === '[DONE]') return true;
    const { id: eventId } = message;
    // A server or proxy that does not know where we were begins anew.
    if (eventId === undefined || (position.last !== undefined && compareEventIds(eventId, position.last) <= 0))
      continue;
    const event = eventOf(message, eventId);
    position.last = eventId;
    position.failures = 0;
    if (event === undefined) continue;
    position.isEnded = isEnd(event);
    yield event;
  }
  return false;
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

/** Ends when the connection does, in order or not: a message without its empty line is not one. */
async function* readMessages(
  call: Call,
  body: ReadableStream<Uint8Array>,
  position: Position,
): AsyncGenerator<EventSourceMessage, void> {
  const decoder = new TextDecoder();
  const messages: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: (message) => messages.push(message),
    onRetry: (retryMs) => (position.retryMs = retryMs),
    // Heartbeats come every 15 s, so silence is a connection whose other end is gone without a word.
    onComment: () => (position.failures = 0),
  });
  for await (const bytes of readParts(call, body)) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* messages.splice(0);
  }
}

/** Below 0 when `left` comes before `right`. Ids are those of Redis streams, `<sequence>-<number>` or `<sequence>`. */
function compareEventIds(left: string, right: string): number {
  const [leftParts, rightParts] = [partsOf(left), partsOf(right)];
  return leftParts[0] - rightParts[0] || leftParts[1] - rightParts[1];
}

function partsOf(id: string): [sequence: number, number: number] {
  const [sequence = '', number = '0'] = id.split('-');
  return [Number(sequence), Number(number)];
}

/** Undefined for an event that this version does not know. */
function eventOf({ event: type, data }: EventSourceMessage, id: string): SentEvent | undefined {
  if (!isKnownType(type)) return undefined;
  try {
    return { ...(JSON.parse(data) as object), type, id } as SentEvent;
  } catch (error) {
    throw connectionFailed(`event ${id} is not JSON`, error);
  }
}
