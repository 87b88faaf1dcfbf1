import type { OutputInfo, RequestEvent } from '@darkroom/core';
import { readOutputChunk } from '@darkroom/store';
import type { AskStore } from '../server/store-guard.ts';

type OutputEvent = Extract<RequestEvent, { type: 'output' }>;

/** What a request's events bring of its outputs while somebody waits for its end: small ones need not be read again. */
export class HeardOutputs {
  /** By output and chunk. */
  readonly #chunks = new Map<number, OutputEvent[]>();

  hear(event: RequestEvent): void {
    if (event.type !== 'output') return;
    const { output, chunkIndex } = event;
    const chunks = this.#chunks.get(output.index) ?? [];
    this.#chunks.set(output.index, chunks);
    chunks[chunkIndex] = event;
  }

  /** Its bytes, without a round trip to Redis; undefined where the events did not bring all of them. */
  async read(askStore: AskStore, id: string, { index, chunks: count, bytes }: OutputInfo): Promise<Buffer | undefined> {
    const chunks = this.#chunks.get(index) ?? [];
    const heard = Array.from({ length: count }, (_value, chunk) => chunks[chunk]);
    if (!heard.every((event) => event?.data !== undefined)) return undefined;
    const parts = await Promise.all(heard.map((event) => askStore((store) => readOutputChunk(store, id, event!))));
    const data = Buffer.concat(parts.filter((part) => part !== undefined));
    return data.length === bytes ? data : undefined;
  }
}
