import type { OutputInfo, StoredEvent } from '@darkroom/core';
import type { WithStore } from '../server/store-guard.ts';
import { readChunk } from './event-bytes.ts';

type OutputEvent = Extract<StoredEvent, { type: 'output' }>;

/** Collects output chunks from events while a call waits for the end, so that small outputs need no second read. */
export class ReceivedOutputs {
  /** Last chunk by index of the output. */
  readonly #chunks = new Map<number, OutputEvent>();

  add(event: StoredEvent): void {
    if (event.type === 'output') this.#chunks.set(event.output.index, event);
  }

  /**
   * Returns the bytes of an output without a round trip; undefined if it has several chunks or its event was missed.
   */
  async read(withStore: WithStore, id: string, { index, chunks, bytes }: OutputInfo): Promise<Buffer | undefined> {
    const chunk = this.#chunks.get(index);
    if (chunks !== 1 || chunk?.data === undefined) return undefined;
    const data = await readChunk(withStore, id, chunk);
    return data?.length === bytes ? data : undefined;
  }
}
