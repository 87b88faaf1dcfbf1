/** Groups a history by request: what was submitted, and what all clients saw of it. */
import type { Entry, EntryOf } from '../history.ts';

export type EventEntry = EntryOf<'event'>;

export interface Reader {
  after: number;
  events: EventEntry[];
  isDone: boolean;
}

export interface Story {
  submit: EntryOf<'submit'>;
  /** Ids that the API returned for its Idempotency-Key; more than one is a violation. */
  requests: Set<string>;
  refusals: EntryOf<'refused'>[];
  readers: Reader[];
  polls: EntryOf<'poll'>[];
  gone: EntryOf<'gone'>[];
  outputs: EntryOf<'output'>[];
  cancels: EntryOf<'cancel'>[];
  webhooks: EntryOf<'webhook'>[];
  gaveUp: EntryOf<'gave-up'>[];
  /** All events that any reader received, each once, by number. */
  log: EventEntry[];
}

export const endTypes: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'expired']);

export function storiesOf(entries: readonly Entry[]): Story[] {
  const byKey = new Map<string, Story>();
  const byRequest = new Map<string, Story>();
  const readers = new Map<number, { reader: Reader; story: Story | undefined }>();
  // Ids first: a webhook may arrive before the answer to the submit.
  for (const entry of entries) {
    if (entry.what === 'submit') byKey.set(entry.key, newStory(entry));
    if (entry.what !== 'accepted') continue;
    byKey.get(entry.key)!.requests.add(entry.request);
    byRequest.set(entry.request, byKey.get(entry.key)!);
  }
  for (const entry of entries) {
    switch (entry.what) {
      case 'refused':
        byKey.get(entry.key)!.refusals.push(entry);
        break;
      case 'gave-up':
        byKey.get(entry.key)!.gaveUp.push(entry);
        break;
      case 'reader': {
        const reader: Reader = { after: entry.after, events: [], isDone: false };
        byRequest.get(entry.request)?.readers.push(reader);
        readers.set(entry.reader, { reader, story: byRequest.get(entry.request) });
        break;
      }
      case 'event':
        readers.get(entry.reader)!.reader.events.push(entry);
        break;
      case 'done':
        readers.get(entry.reader)!.reader.isDone = true;
        break;
      case 'poll':
        byRequest.get(entry.request)?.polls.push(entry);
        break;
      case 'gone':
        byRequest.get(entry.request)?.gone.push(entry);
        break;
      case 'output':
        byRequest.get(entry.request)?.outputs.push(entry);
        break;
      case 'cancel':
        byRequest.get(entry.request)?.cancels.push(entry);
        break;
      case 'webhook':
        byRequest.get(entry.request)?.webhooks.push(entry);
        break;
      case 'submit':
      case 'accepted':
      case 'late':
      case 'stale-write':
      case 'attack':
      case 'fault':
      case 'crash':
        break;
    }
  }
  const stories = [...byKey.values()];
  for (const story of stories) story.log = logOf(story);
  return stories;
}

function newStory(submit: EntryOf<'submit'>): Story {
  const nothing = { refusals: [], readers: [], polls: [], gone: [], outputs: [], cancels: [], webhooks: [] };
  return { submit, requests: new Set(), ...nothing, gaveUp: [], log: [] };
}

function logOf({ readers }: Story): EventEntry[] {
  const all = new Map<number, EventEntry>();
  for (const { events } of readers) for (const event of events) if (!all.has(event.event)) all.set(event.event, event);
  return [...all.values()].toSorted((left, right) => left.event - right.event);
}

/** Returns the ends that clients saw in events, polls and webhooks, with the time seen (for events: written). */
export function endsOf({ log, polls, webhooks }: Story): { state: string; atMs: number }[] {
  return [
    ...log
      .filter(({ type }) => endTypes.has(type))
      .map(({ type, facts }) => ({ state: type, atMs: facts.writtenAtMs })),
    ...polls.filter(({ state }) => endTypes.has(state)),
    ...webhooks
      .map(({ type, atMs }) => ({ state: type.replace('request.', ''), atMs }))
      .filter(({ state }) => endTypes.has(state)),
  ];
}
