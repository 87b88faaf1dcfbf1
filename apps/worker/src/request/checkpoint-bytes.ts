import type { RowCheckpoint } from '@darkroom/core';

const headerBytes = 4;

/** A checkpoint as stored: how far the row had come as a 32-bit little-endian number, then the pipeline's bytes. */
export function encodeCheckpoint({ done, data }: RowCheckpoint): Buffer {
  const bytes = Buffer.alloc(headerBytes + data.byteLength);
  bytes.writeUInt32LE(done, 0);
  bytes.set(data, headerBytes);
  return bytes;
}

/** @throws RangeError if the bytes are too few to be a checkpoint. */
export function decodeCheckpoint(bytes: Buffer): RowCheckpoint {
  return { done: bytes.readUInt32LE(0), data: Uint8Array.from(bytes.subarray(headerBytes)) };
}
