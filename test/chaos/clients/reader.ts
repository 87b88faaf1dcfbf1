/** Event stream client that reconnects with `Last-Event-ID` until it has all events. */
import { once } from 'node:events';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Dice } from '../dice.ts';
import { digestOf, type EventFacts, type History } from '../history.ts';
import { type Connection, GaveUp } from './connection.ts';

/** Longer than the pause between the comments that keep a stream alive. */
const silenceMs = 20_000;
const beginMs = 15_000;

export interface ReadOptions {
  /** Disconnects at random events. */
  leaves?: boolean;
}

interface Log {
  history: History;
  dice: Dice;
}

/**
 * Reads all events of a request, with as many connections as needed. Returns when it ended (Redis' clock, ms since the
 * epoch), or undefined after a 404 or 410. Throws {@link GaveUp}.
 */
export async function readEvents(
  connection: Connection,
  { history, dice }: Log,
  request: string,
  { leaves = false }: ReadOptions = {},
): Promise<number | undefined> {
  const reader = history.newReader(request, 0);
  let last = '';
  let endedAtMs: number | undefined;
  let deadlineMs = connection.deadlineMs();
  const take = ({ id = '', event = '', data }: EventSourceMessage): void => {
    if (data === '[DONE]') return history.add({ what: 'done', reader });
    last = id;
    deadlineMs = connection.deadlineMs();
    const { facts, digest } = digestEvent(data);
    history.add({ what: 'event', reader, event: Number.parseInt(id, 10), type: event, facts, digest });
    endedAtMs = facts.writtenAtMs;
  };
  for (;;) {
    const outcome = await readOnce(connection.url(`/v1/predict/${request}/events`), last, (message) => {
      take(message);
      if (message.data === '[DONE]') return 'done';
      return leaves && dice.chance(0.05) ? 'leave' : 'stay';
    });
    if (outcome === 'done') return endedAtMs;
    if (outcome === 404 || outcome === 410) {
      history.add({ what: 'gone', request, status: outcome });
      return undefined;
    }
    if (Date.now() > deadlineMs) throw new GaveUp(`events of ${request} after ${last}`);
    await connection.pause();
  }
}

/** Reads over one connection; returns a status other than 200, or how the stream ended. */
async function readOnce(
  url: string,
  last: string,
  take: (message: EventSourceMessage) => 'done' | 'leave' | 'stay',
): Promise<number | 'done' | 'broken'> {
  const over = new AbortController();
  // Raced with each read: an aborted read may never settle.
  const silent = once(over.signal, 'abort').then(() => undefined);
  let timer = setTimeout(() => over.abort(), beginMs);
  const seen: { next: 'done' | 'leave' | 'stay' } = { next: 'stay' };
  const parser = createParser({
    onEvent(message) {
      // Ignore events that arrived in the same chunk as the one at which the client disconnects.
      if (seen.next === 'stay') seen.next = take(message);
    },
  });
  try {
    const headers: Record<string, string> = last === '' ? {} : { 'last-event-id': last };
    const response = await fetch(url, { headers, signal: over.signal });
    if (response.status !== 200) return response.status;
    const body = response.body!.getReader();
    const decoder = new TextDecoder();
    while (seen.next === 'stay') {
      const chunk = await Promise.race([body.read(), silent]);
      if (chunk?.value === undefined) break;
      clearTimeout(timer);
      timer = setTimeout(() => over.abort(), silenceMs);
      parser.feed(decoder.decode(chunk.value, { stream: true }));
    }
  } catch {
    // The connection is broken.
  } finally {
    clearTimeout(timer);
    over.abort();
  }
  return seen.next === 'done' ? 'done' : 'broken';
}

/** Extracts the fields that the checker compares. Previews are excluded: they are deleted when a request ends. */
function digestEvent(data: string): { digest: string; facts: EventFacts } {
  const { preview: _preview, ...rest } = JSON.parse(data) as { preview?: string; timestamp: string } & EventFacts;
  const { index, step, offset, text } = rest;
  const given = { index, step, offset, text };
  const facts = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { digest: digestOf(JSON.stringify(rest)), facts: { writtenAtMs: Date.parse(rest.timestamp), ...facts } };
}
