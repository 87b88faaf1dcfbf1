/** A minimal HTTP client for tests of a running API. */
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

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'content-type': 'application/json', ...headers };
  return fetch(url, { method: 'POST', headers: all, body: JSON.stringify(body) });
}

/** Submits a request by POST /v1/predict and returns its id. Throws unless the status is 202. */
export async function submit(url: string, body: object, headers: Record<string, string> = {}): Promise<string> {
  const response = await postJson(`${url}/v1/predict`, body, headers);
  if (response.status !== 202) throw new Error(`POST /v1/predict: ${response.status} ${await response.text()}`);
  return ((await response.json()) as Submitted).request_id;
}

/** Polls a request once. */
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
  /** Reading stops after the first event for which this returns true. */
  until?: (event: ServerEvent) => boolean;
}

/** Reads the events of a request up to and including `[DONE]`. */
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

/** Waits over SSE until a request ends. Returns the type of its terminal event. */
export async function ended(url: string, id: string): Promise<string> {
  const events = await stream(url, id);
  return events.findLast(({ event }) => event !== undefined)?.event ?? 'no event';
}

/** Fetches a finished image. */
export async function fetchImage(url: string, id: string, index = 0): Promise<Buffer> {
  const response = await fetch(`${url}/v1/predict/${id}/images/${index}`);
  if (!response.ok) throw new Error(`image ${index} of ${id}: ${response.status} ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Submits a request, waits for its end and fetches image 0. Throws unless the request succeeds. */
export async function make(url: string, body: PredictBody): Promise<Buffer> {
  const id = await submit(url, body);
  const outcome = await ended(url, id);
  if (outcome !== 'succeeded') throw new Error(`${id} ${outcome}`);
  return fetchImage(url, id);
}

/** Returns the types of events, without progress and image events, whose number varies. */
export function typesOf(events: readonly ServerEvent[]): string[] {
  return events.map(({ event, data }) => event ?? data).filter((type) => type !== 'progress' && type !== 'image');
}

export function stepsOf(events: readonly ServerEvent[]): number[] {
  return events
    .filter(({ event }) => event === 'progress')
    .map(({ data }) => (JSON.parse(data) as { step: number }).step);
}

/** Creates an `until` that stops at the first progress event of this step or a later one. */
export function isStep(step: number): (event: ServerEvent) => boolean {
  return (event) => (stepsOf([event])[0] ?? -1) >= step;
}
