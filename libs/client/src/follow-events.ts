import type { EventSourceMessage } from 'eventsource-parser';
import { backOffMs } from './back-off.ts';
import type { ClientContext } from './client-context.ts';
import { ClientError, isPassing } from './client-error.ts';
import { compareEventIds } from './event-id.ts';
import { readMessages } from './read-messages.ts';
import { requestPath } from './request-path.ts';
import { connectionFailed, send } from './send.ts';
import { isEnd, isWireEventType, type WireEvent } from './wire-event.ts';

export interface FollowEventsOptions {
  /** Id of the last event seen; all when undefined. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
}

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
 * The events of a request in order, each once, over as many connections as it takes. Ends after `[DONE]`. Throws
 * {@link ClientError} for what does not pass, or when `maxRetries` connections in a row brought nothing.
 */
export async function* followEvents(
  context: ClientContext,
  id: string,
  { after, signal }: FollowEventsOptions,
): AsyncGenerator<WireEvent, void> {
  const position: Position = { last: after, retryMs: undefined, failures: 0, isEnded: false };
  for (;;) {
    let error = connectionFailed(`the events of ${id} were cut`, undefined);
    try {
      if (yield* readConnection(context, id, position, signal)) return;
    } catch (caught) {
      // Nothing follows the end, so nothing is lost with the rest.
      if (position.isEnded && isPassing(caught)) return;
      if (!isPassing(caught)) throw caught;
      error = caught;
    }
    if (position.isEnded) return;
    const { failures, retryMs } = position;
    if (failures >= context.maxRetries) throw error;
    await context.delay(backOffMs(context, { failures, retryMs, retryAfterS: error.retryAfterS }), signal);
    position.failures++;
  }
}

/** One connection; true after `[DONE]`, false when it was cut. */
async function* readConnection(
  context: ClientContext,
  id: string,
  position: Position,
  signal: AbortSignal | undefined,
): AsyncGenerator<WireEvent, boolean> {
  const body = await openEvents(context, id, position.last, signal);
  const messages = readMessages(body, {
    silenceMs: context.silenceMs,
    signal,
    onRetry: (retryMs) => (position.retryMs = retryMs),
    onComment: () => (position.failures = 0),
  });
  for await (const message of messages) {
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

async function openEvents(
  context: ClientContext,
  id: string,
  last: string | undefined,
  signal: AbortSignal | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
  const path = `${requestPath(id)}/events`;
  const response = await send(context, path, { headers, signal });
  const type = response.headers.get('content-type') ?? 'nothing';
  if (response.body !== null && type.startsWith('text/event-stream')) return response.body;
  response.body?.cancel().catch(() => {});
  const message = `GET ${path} was answered with ${type}, expected text/event-stream`;
  throw new ClientError({ status: response.status, code: 'invalid_answer', message });
}

/** Undefined for an event that this version does not know. */
function eventOf({ event: type, data }: EventSourceMessage, id: string): WireEvent | undefined {
  if (!isWireEventType(type)) return undefined;
  try {
    return { ...(JSON.parse(data) as object), type, id } as WireEvent;
  } catch (error) {
    throw connectionFailed(`event ${id} is not JSON`, error);
  }
}
