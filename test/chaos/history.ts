/** History of a run: what clients did and saw, in order. With the final state of Redis, the input of the checker. */
import { createHash } from 'node:crypto';
import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

export interface Body {
  model: string;
  [field: string]: unknown;
}

/** An action or observation. `request`: an id that the API returned. */
export type Seen =
  /** `key`: Idempotency-Key. `same`: requests with the same value must have the same outputs; undefined: no promise. */
  | { what: 'submit'; key: string; body: Body; same?: string; isToExpire: boolean; hasWebhook: boolean }
  | { what: 'accepted'; key: string; request: string }
  /** A submit was answered with 4xx and is not retried. */
  | { what: 'refused'; key: string; status: number }
  /** A reader starts after event `after`, and may use several connections. */
  | { what: 'reader'; reader: number; request: string; after: number }
  | { what: 'event'; reader: number; event: number; type: string; digest: string; facts: EventFacts }
  /** The stream sent `[DONE]`. */
  | { what: 'done'; reader: number }
  | { what: 'poll'; request: string; state: string }
  /** The API answered 404 or 410. */
  | { what: 'gone'; request: string; status: number }
  | { what: 'output'; request: string; index: number; digest: string; text?: string }
  | { what: 'cancel'; request: string; status: number }
  /** `answer`: status that the receiver returned. */
  | { what: 'webhook'; request: string; id: string; type: string; answer: number }
  /** The client had no answer after minutes of retries. */
  | { what: 'gave-up'; key: string; last: string }
  /** The result is read once more, shortly before it expires. */
  | { what: 'late'; request: string }
  /** A hostile body was answered with `status`. */
  | { what: 'attack'; name: string; status: number }
  /** A write with the lease token of an earlier delivery; `outcome`: result of the write script. */
  | { what: 'stale-write'; request: string; outcome: string }
  /** `hit`: requests of a worker when it was killed; `room`: other workers with capacity for them at that time. */
  | { what: 'fault'; fault: string; target: string; hit?: string[]; room?: string[] }
  /** A process exited without a fault, or not as requested. */
  | { what: 'crash'; process: string; how: string };

export type Entry = Seen & { atMs: number };
export type EntryOf<What extends Seen['what']> = Extract<Entry, { what: What }>;

export interface EventFacts {
  /** When the event was written, by Redis' clock, ms since the epoch. */
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

  /** `file`: receives each entry as a JSON line. */
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

  /** Resolves when all entries are in the file. */
  async close(): Promise<void> {
    this.#file.end();
    await finished(this.#file);
  }
}

export function digestOf(data: string | Uint8Array): string {
  return createHash('sha1').update(data).digest('hex').slice(0, 16);
}
