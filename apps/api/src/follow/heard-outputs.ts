import type { OutputInfo, RequestEvent } from '@darkroom/core';
import { readOutputChunk } from '@darkroom/store';
import type { AskStore } from '../server/store-guard.ts';

type OutputEvent = Extract<RequestEvent, { type: 'output' }>;

/** What a request's events bring of its outputs while somebody waits for its end: small ones need not be read again. */
export class HeardOutputs {
  /** By output: the chunk that came last. */
  readonly #chunks = new Map<number, OutputEvent>();

  hear(event: RequestEvent): void {
    if (event.type === 'output') this.#chunks.set(event.output.index, event);
  }

  /** Its bytes, without a round trip to Redis; undefined where it is more than one chunk, or the events did not bring it. */
  async read(askStore: AskStore, id: string, { index, chunks, bytes }: OutputInfo): Promise<Buffer | undefined> {
    const chunk = this.#chunks.get(index);
    if (chunks !== 1 || chunk?.data === undefined) return undefined;
    const data = await askStore((store) => readOutputChunk(store, id, chunk));
    return data?.length === bytes ? data : undefined;
  }
}
