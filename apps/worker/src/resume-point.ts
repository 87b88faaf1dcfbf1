import type { RowCheckpoint } from '@darkroom/core';
import { type LeasedRequest, readCheckpoints, readFinishedOutputs, type StoreConnection } from '@darkroom/store';
import { decodeCheckpoint } from './checkpoint-bytes.ts';

/** What is left to do of a request. */
export interface ResumePoint {
  /** Outputs that are yet to be made. */
  indexes: number[];
  /** Where their rows go on; those without one begin anew. */
  checkpoints: ReadonlyMap<number, RowCheckpoint>;
}

/** One round trip for a request that ran before, none for others. */
export async function readResumePoint(
  store: StoreConnection,
  { envelope: { model, id, outputs }, isResumed }: LeasedRequest,
): Promise<ResumePoint> {
  const all = Array.from({ length: outputs }, (_value, index) => index);
  if (!isResumed) return { indexes: all, checkpoints: new Map() };
  const [checkpoints, finished] = await Promise.all([
    readCheckpoints(store, model, id, outputs),
    readFinishedOutputs(store, model, id),
  ]);
  return {
    indexes: all.filter((index) => !finished.has(index)),
    checkpoints: new Map([...checkpoints].map(([index, bytes]) => [index, decodeCheckpoint(bytes)])),
  };
}
