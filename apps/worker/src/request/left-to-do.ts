import type { RowCheckpoint } from '@darkroom/core';
import { type LeasedRequest, readResumePoint, type StoreConnection } from '@darkroom/store';
import { decodeCheckpoint } from './checkpoint-bytes.ts';

/** What is left to do of a request. */
export interface LeftToDo {
  /** Outputs that are yet to be made. */
  indexes: number[];
  /** Where their rows go on; those without one begin anew. */
  checkpoints: ReadonlyMap<number, RowCheckpoint>;
  /** What stands of the text of outputs that have any, by index. */
  texts: ReadonlyMap<number, string>;
}

/** One round trip for a request that ran before, one more if it has written text, none for others. */
export async function readLeftToDo(store: StoreConnection, { envelope, isResumed }: LeasedRequest): Promise<LeftToDo> {
  const all = Array.from({ length: envelope.outputs }, (_value, index) => index);
  if (!isResumed) return { indexes: all, checkpoints: new Map(), texts: new Map() };
  const { finished, checkpoints, texts } = await readResumePoint(store, envelope);
  return {
    indexes: all.filter((index) => !finished.has(index)),
    checkpoints: new Map([...checkpoints].map(([index, bytes]) => [index, decodeCheckpoint(bytes)])),
    texts,
  };
}
