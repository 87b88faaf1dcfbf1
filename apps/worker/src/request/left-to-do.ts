import type { RowCheckpoint, TextEvent } from '@darkroom/core';
import { type LeasedRequest, readResumePoint, type StoreConnection } from '@darkroom/store';

export interface LeftToDo {
  /** Outputs that are yet to be made. */
  indexes: number[];
  /** Where their rows go on; those without one begin anew. */
  checkpoints: ReadonlyMap<number, RowCheckpoint & { origin: string }>;
  /** What was said of the text of outputs that have any, by index. */
  said: ReadonlyMap<number, readonly TextEvent[]>;
  /** What came with the request; undefined when nothing did. */
  attachments?: ReadonlyMap<string, Uint8Array> | undefined;
}

const headerBytes = 4;

/** A checkpoint as stored: how far the row had come as a 32-bit little-endian number, then the pipeline's bytes. */
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
 * One round trip for a request that ran before, one for what came with it, one more if it has written text, none for others.
 * Undefined when what came with it is not waited for any more.
 *
 * @param readAttachments waits out that they cannot be read now.
 */
export async function readLeftToDo(
  store: StoreConnection,
  { envelope, isResumed }: LeasedRequest,
  readAttachments: () => Promise<LeftToDo['attachments']>,
): Promise<LeftToDo | undefined> {
  const all = Array.from({ length: envelope.outputs }, (_value, index) => index);
  // Before its checkpoints, which lie at the same place and are not waited for.
  const attachments = envelope.attachments && (await readAttachments());
  if (envelope.attachments && attachments === undefined) return undefined;
  if (!isResumed) return { indexes: all, checkpoints: new Map(), said: new Map(), attachments };
  const { finished, checkpoints, said } = await readResumePoint(store, envelope);
  return {
    attachments,
    indexes: all.filter((index) => !finished.has(index)),
    checkpoints: new Map(
      [...checkpoints].map(([index, { data, origin }]) => [index, { ...decodeCheckpoint(data), origin }]),
    ),
    said,
  };
}

/** Those that were made with the same model. Nothing is known of those without an origin, nor by those without. */
export function checkpointsFor({ checkpoints }: LeftToDo, origin: string): ReadonlyMap<number, RowCheckpoint> {
  return new Map(
    [...checkpoints].flatMap(([index, { origin: other, ...checkpoint }]) =>
      other === origin || other === '' || origin === '' ? [[index, checkpoint] as const] : [],
    ),
  );
}
