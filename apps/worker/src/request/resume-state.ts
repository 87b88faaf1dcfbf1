import type { RowCheckpoint, StoredTextEvent } from '@darkroom/core';
import { type LeasedRequest, readResumePoint, type StoreConnection } from '@darkroom/store';

export interface ResumeState {
  /** Outputs still to be made. */
  indexes: number[];
  /** Checkpoints by output; rows without one start anew. */
  checkpoints: ReadonlyMap<number, RowCheckpoint & { origin: string }>;
  /** Text events already published, by output. */
  texts: ReadonlyMap<number, readonly StoredTextEvent[]>;
  /** The request's attachments; undefined if it has none. */
  attachments?: ReadonlyMap<string, Uint8Array> | undefined;
}

const headerBytes = 4;

/** Encodes a checkpoint for storage: the row's progress as uint32 (little endian), then the pipeline's bytes. */
export function encodeCheckpoint({ done, data }: RowCheckpoint): Buffer {
  const bytes = Buffer.alloc(headerBytes + data.byteLength);
  bytes.writeUInt32LE(done, 0);
  bytes.set(data, headerBytes);
  return bytes;
}

function decodeCheckpoint(bytes: Buffer): RowCheckpoint {
  return { done: bytes.readUInt32LE(0), data: Uint8Array.from(bytes.subarray(headerBytes)) };
}

/**
 * Reads where to resume a request. Round trips: one if it ran before, one for attachments, one more if it has written
 * text.
 *
 * @param readAttachments retries while the blob store is unavailable.
 * @returns undefined if its attachments are no longer waited for.
 */
export async function readResumeState(
  store: StoreConnection,
  { envelope, isResumed }: LeasedRequest,
  readAttachments: () => Promise<ResumeState['attachments']>,
): Promise<ResumeState | undefined> {
  const all = Array.from({ length: envelope.outputs }, (_value, index) => index);
  // Before the checkpoints, which are in the same store and are skipped when it is unavailable.
  const attachments = envelope.attachments && (await readAttachments());
  if (envelope.attachments && attachments === undefined) return undefined;
  if (!isResumed) return { indexes: all, checkpoints: new Map(), texts: new Map(), attachments };
  const { finished, checkpoints, texts } = await readResumePoint(store, envelope);
  return {
    attachments,
    indexes: all.filter((index) => !finished.has(index)),
    checkpoints: new Map(
      [...checkpoints].map(([index, { data, origin }]) => [index, { ...decodeCheckpoint(data), origin }]),
    ),
    texts,
  };
}

/** Returns the checkpoints made with the same model files. An unknown digest on either side counts as the same. */
export function checkpointsFor({ checkpoints }: ResumeState, modelDigest: string): ReadonlyMap<number, RowCheckpoint> {
  return new Map(
    [...checkpoints].flatMap(([index, { origin, ...checkpoint }]) =>
      origin === modelDigest || origin === '' || modelDigest === '' ? [[index, checkpoint] as const] : [],
    ),
  );
}
