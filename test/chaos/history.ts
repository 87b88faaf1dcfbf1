/** What clients saw, in the order in which they saw it: all that the checker knows of a run, besides what stands in Redis at its end. */
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';

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
  | { what: 'gave-up'; key: string; asked: string; last: string }
  /** A write under a token of an earlier delivery, and what Redis said to it. */
  | { what: 'stale-write'; request: string; outcome: string }
  /** `hit`: requests that a worker had when it was killed. */
  | { what: 'fault'; fault: string; target: string; hit?: string[] };

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
  #readers = 0;

  add(seen: Seen): void {
    this.entries.push({ ...seen, atMs: Date.now() });
  }

  newReader(request: string, after: number): number {
    const reader = ++this.#readers;
    this.add({ what: 'reader', reader, request, after });
    return reader;
  }

  /** As JSON lines. */
  save(file: string): void {
    const block = 1000;
    for (let at = 0; at < this.entries.length; at += block)
      appendFileSync(
        file,
        this.entries
          .slice(at, at + block)
          .map((entry) => `${JSON.stringify(entry)}\n`)
          .join(''),
      );
  }
}

export function digestOf(data: string | Uint8Array): string {
  return createHash('sha1').update(data).digest('hex').slice(0, 16);
}
