import type { RowCheckpoint } from '@darkroom/diffusion';

const headerBytes = 4;

/** A checkpoint as stored: the step as a 32-bit little-endian number, then the pipeline's bytes. */
export function encodeCheckpoint({ step, data }: RowCheckpoint): Buffer {
  const bytes = Buffer.alloc(headerBytes + data.byteLength);
  bytes.writeUInt32LE(step, 0);
  bytes.set(data, headerBytes);
  return bytes;
}

/** @throws RangeError if the bytes are too few to be a checkpoint. */
export function decodeCheckpoint(bytes: Buffer): RowCheckpoint {
  return { step: bytes.readUInt32LE(0), data: Uint8Array.from(bytes.subarray(headerBytes)) };
}
