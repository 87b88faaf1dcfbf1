/** What clients saw, in the order in which they saw it: all that the checker knows of a run, besides what stands in Redis at its end. */
import { createHash } from 'node:crypto';
import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

export interface Body {
  model: string;
  [field: string]: unknown;
}

/** What a client did or saw. `request`: an id that the API gave out. */
export type Seen =
  /** `key`: its Idempotency-Key; `same`: bodies that have this in common have the same outputs, none if that is not promised. */
  | { what: 'submit'; key: string; body: Body; same?: string; isToExpire: boolean; hasWebhook: boolean }
  | { what: 'accepted'; key: string; request: string }
  /** An answer that ends the matter; a 4xx. */
  | { what: 'refused'; key: string; status: number }
  /** `reader`: one that reads from `after` on, over as many connections as it takes. */
  | { what: 'reader'; reader: number; request: string; after: number }
  | { what: 'event'; reader: number; event: number; type: string; digest: string; facts: EventFacts }
  /** `[DONE]` */
  | { what: 'done'; reader: number }
  | { what: 'poll'; request: string; state: string }
  /** 404 or 410 */
  | { what: 'gone'; request: string; status: number }
  | { what: 'output'; request: string; index: number; digest: string; text?: string }
  | { what: 'cancel'; request: string; status: number }
  /** `answer`: the status that the receiver gave. */
  | { what: 'webhook'; request: string; id: string; type: string; answer: number }
  /** It tried again for minutes and had no answer. */
  | { what: 'gave-up'; key: string; last: string }
  /** What came of it is read once more, shortly before its time is over. */
  | { what: 'late'; request: string }
  /** A write under a token of an earlier delivery, and what Redis said to it. */
  | { what: 'stale-write'; request: string; outcome: string }
  /** `hit`: requests that a worker had when it was killed; `room`: other workers that had room for them then. */
  | { what: 'fault'; fault: string; target: string; hit?: string[]; room?: string[] }
  /** A process of ours that nobody had ended, or that did not end as it was asked to. */
  | { what: 'crash'; process: string; how: string };

export type Entry = Seen & { atMs: number };
export type EntryOf<What extends Seen['what']> = Extract<Entry, { what: What }>;

export interface EventFacts {
  /** When it was written, by Redis' clock, ms since the epoch. */
  writtenAtMs: number;
  index?: number;
  step?: number;
  offset?: number;
  text?: string;
}

export class History {
  readonly entries: Entry[] = [];
  readonly #counts = new Map<Seen['what'], number>();
  readonly #file: WriteStream;
  #readers = 0;

  /** `file`: gets a JSON line for each entry. */
  constructor(file: string) {
    this.#file = createWriteStream(file);
  }

  add(seen: Seen): void {
    const entry = { ...seen, atMs: Date.now() };
    this.entries.push(entry);
    this.#counts.set(seen.what, this.count(seen.what) + 1);
    this.#file.write(`${JSON.stringify(entry)}\n`);
  }

  count(what: Seen['what']): number {
    return this.#counts.get(what) ?? 0;
  }

  newReader(request: string, after: number): number {
    const reader = ++this.#readers;
    this.add({ what: 'reader', reader, request, after });
    return reader;
  }

  /** Until the file has all of it. */
  async close(): Promise<void> {
    this.#file.end();
    await finished(this.#file);
  }
}

export function digestOf(data: string | Uint8Array): string {
  return createHash('sha1').update(data).digest('hex').slice(0, 16);
}
