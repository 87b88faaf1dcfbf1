/** What a client sees, over real sockets: just enough of one for the tests. */
import { EventSourceParserStream } from 'eventsource-parser/stream';

export interface PredictBody {
  prompt: string;
  [field: string]: unknown;
}

export interface Submitted {
  request_id: string;
  status: string;
  queue_position: number;
}

/** POST /v1/predict; anything but 202 is an error. */
export async function submit(url: string, body: PredictBody): Promise<string> {
  const response = await fetch(`${url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 202) throw new Error(`POST /v1/predict: ${response.status} ${await response.text()}`);
  return ((await response.json()) as Submitted).request_id;
}

/** One poll. */
export async function poll(url: string, id: string): Promise<{ status: string; [field: string]: unknown }> {
  const response = await fetch(`${url}/v1/predict/${id}`);
  return (await response.json()) as { status: string };
}

export interface ServerEvent {
  id: string | undefined;
  event: string | undefined;
  data: string;
}

export interface StreamOptions {
  lastEventId?: string;
  /** Stop reading after this event. */
  until?: (event: ServerEvent) => boolean;
}

/** The events of a request up to and including `[DONE]`. */
export async function stream(
  url: string,
  id: string,
  { lastEventId, until }: StreamOptions = {},
): Promise<ServerEvent[]> {
  const response = await fetch(`${url}/v1/predict/${id}/events`, {
    headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
  });
  if (!response.ok || response.body === null) throw new Error(`events: ${response.status} ${await response.text()}`);
  const events: ServerEvent[] = [];
  const messages = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { id: eventId, event, data } of messages) {
    events.push({ id: eventId, event, data });
    if (data === '[DONE]' || until?.(events.at(-1)!) === true) break;
  }
  return events;
}

/** Waits for the end over SSE; returns the terminal event's type. */
export async function ended(url: string, id: string): Promise<string> {
  const events = await stream(url, id);
  return events.findLast(({ event }) => event !== undefined)?.event ?? 'no event';
}

/** The bytes of a finished picture. */
export async function picture(url: string, id: string, index = 0): Promise<Buffer> {
  const response = await fetch(`${url}/v1/predict/${id}/images/${index}`);
  if (!response.ok) throw new Error(`image ${index} of ${id}: ${response.status} ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Submits, waits for success and fetches picture 0. */
export async function make(url: string, body: PredictBody): Promise<Buffer> {
  const id = await submit(url, body);
  const outcome = await ended(url, id);
  if (outcome !== 'succeeded') throw new Error(`${id} ${outcome}`);
  return picture(url, id);
}

/** The types of events, without those of which there are many. */
export function typesOf(events: readonly ServerEvent[]): string[] {
  return events.map(({ event, data }) => event ?? data).filter((type) => type !== 'progress' && type !== 'image');
}

export function stepsOf(events: readonly ServerEvent[]): number[] {
  return events
    .filter(({ event }) => event === 'progress')
    .map(({ data }) => (JSON.parse(data) as { step: number }).step);
}

/** For `until`: the request has come so far. */
export function isStep(step: number): (event: ServerEvent) => boolean {
  return (event) => (stepsOf([event])[0] ?? -1) >= step;
}
