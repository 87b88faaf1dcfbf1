/** Pictures with their bytes: fetched from their urls, or put together from the chunks of a stream. */
import type { ImageInfo, Picture } from './answers.ts';
import { connectionFailed, readBytes, retrying, send } from './http.ts';
import type { Call } from './options.ts';
import type { ChunkEvent } from './stream-event.ts';

/** The picture with its bytes, from its url. */
export function fetchPicture(call: Call, image: ImageInfo): Promise<Picture> {
  const { index, url, seed, width, height, bytes } = image;
  return retrying(call, async () => {
    const response = await send(call, url);
    const data = await readBytes(call, response);
    const contentType = response.headers.get('content-type') ?? image.content_type;
    // Without a length nobody else notices a body that is cut; with one, a proxy may have made the picture smaller.
    if (data.length < bytes && !response.headers.has('content-length'))
      throw connectionFailed(`GET ${url} brought ${data.length} of ${bytes} bytes`);
    return { index, url, seed, width, height, content_type: contentType, bytes: data.length, data };
  });
}

export interface PictureAssembler {
  /**
   * The picture's bytes with its last chunk; `open` while more will come, `broken` when the last one came and another
   * did not.
   */
  add(chunk: ChunkEvent): Uint8Array<ArrayBuffer> | 'open' | 'broken';
  /** Whether chunks of this picture came, but not all. */
  isOpen(index: number): boolean;
}

/** Puts the chunks of pictures together. Chunks of several pictures may come mixed, each picture's in order. */
export function createPictureAssembler(): PictureAssembler {
  const open = new Map<number, (Uint8Array<ArrayBuffer> | undefined)[]>();
  return {
    add({ index, chunk_index: chunkIndex, total_chunks: total, b64, bytes }) {
      // A lost worker's picture comes again from its first chunk.
      const parts = chunkIndex === 0 ? [] : (open.get(index) ?? []);
      parts[chunkIndex] = b64 === null ? undefined : decoded(b64);
      open.set(index, parts);
      if (chunkIndex < total - 1) return 'open';
      const data = joined(parts, total, bytes);
      if (data !== undefined) open.delete(index);
      return data ?? 'broken';
    },
    isOpen: (index) => open.has(index),
  };
}

/** Undefined for what is not base64. Browsers' `atob` gives one character per byte. */
function decoded(b64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(b64), (character) => character.charCodeAt(0));
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
