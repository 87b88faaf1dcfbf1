/** Checkpoints of rows in another process: the engine's bytes, and the text that readers of the row have. */
import type { RowCheckpoint } from '@darkroom/core';
import type { ReaderState } from '../module/output-reader.ts';

const lengthBytes = 4;

/** Format: the length of the text (32 bits, little-endian), the text, the engine's bytes. */
export function encodeCheckpoint({ done, text }: ReaderState, data: Uint8Array): RowCheckpoint {
  const encoded = Buffer.from(text);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(encoded.length);
  return { done, data: Buffer.concat([length, encoded, data]) };
}

/** Returns undefined if there is no checkpoint, or it has another format. */
export function decodeCheckpoint(
  checkpoint: RowCheckpoint | undefined,
): (ReaderState & { data: Uint8Array }) | undefined {
  if (checkpoint === undefined || checkpoint.data.length < lengthBytes) return undefined;
  const { buffer, byteOffset, byteLength } = checkpoint.data;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  const end = lengthBytes + bytes.readUInt32LE();
  if (end > bytes.length) return undefined;
  return { done: checkpoint.done, text: bytes.toString('utf8', lengthBytes, end), data: bytes.subarray(end) };
}
