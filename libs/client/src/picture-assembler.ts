import { bytesOfBase64 } from './base64.ts';
import type { ChunkEvent } from './wire-event.ts';

export type AssembledPicture =
  | { status: 'whole'; data: Uint8Array<ArrayBuffer> }
  /** More chunks will come. */
  | { status: 'open' }
  /** The last chunk came, and another did not. */
  | { status: 'broken' };

export interface PictureAssembler {
  add(chunk: ChunkEvent): AssembledPicture;
  /** Whether chunks of this picture came, but not all. */
  isOpen(index: number): boolean;
}

/** Puts the chunks of pictures together. Chunks of several pictures may come mixed, each picture's in order. */
export function createPictureAssembler(): PictureAssembler {
  const open = new Map<number, (Uint8Array<ArrayBuffer> | undefined)[]>();
  return {
    add(chunk) {
      const { index, chunk_index: chunkIndex, total_chunks: total, b64 } = chunk;
      // A lost worker's picture comes again from its first chunk.
      const parts = chunkIndex === 0 ? [] : (open.get(index) ?? []);
      parts[chunkIndex] = b64 === null ? undefined : decoded(b64);
      open.set(index, parts);
      if (chunkIndex < total - 1) return { status: 'open' };
      const data = joined(parts, total, chunk.bytes);
      if (data === undefined) return { status: 'broken' };
      open.delete(index);
      return { status: 'whole', data };
    },
    isOpen: (index) => open.has(index),
  };
}

function decoded(b64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return bytesOfBase64(b64);
  } catch {
    return undefined;
  }
}

/** Undefined when a part is missing, or the sum of them is not `bytes`. */
function joined(
  parts: readonly (Uint8Array<ArrayBuffer> | undefined)[],
  total: number,
  bytes: number,
): Uint8Array<ArrayBuffer> | undefined {
  const data = new Uint8Array(bytes);
  let offset = 0;
  for (let chunk = 0; chunk < total; chunk++) {
    const part = parts[chunk];
    if (part === undefined || offset + part.length > bytes) return undefined;
    data.set(part, offset);
    offset += part.length;
  }
  return offset === bytes ? data : undefined;
}
