import { byteAt } from '@darkroom/core';
/** Adds and removes EXIF and XMP in WebP files (https://developers.google.com/speed/webp/docs/riff_container). */

const riffBytes = 12;
/** Name and length of a chunk. */
const frameBytes = 8;
/** Data of the extended header (`VP8X`). A simple file contains the image size in as many bytes of image data. */
const headerBytes = 10;
/** Flags of the extended header. */
const [exifFlag, xmpFlag, alphaFlag] = [0x08, 0x04, 0x10];

interface Chunk {
  name: string;
  data: Buffer;
}

/** Appends EXIF and XMP to a WebP file without them. Adds the extended header (`VP8X`), which simple files lack. */
export function withWebpBlocks(webp: Uint8Array, { exif, xmp }: { exif: Buffer; xmp: Buffer }): Uint8Array {
  const [first, ...others] = chunksOf(webp);
  if (first === undefined || first.data.length < headerBytes) return webp;
  const isExtended = first.name === 'VP8X';
  const header = isExtended ? Buffer.from(first.data) : extendedHeaderOf(first);
  header[0] = byteAt(header, 0) | exifFlag | xmpFlag;
  return riffOf([
    { name: 'VP8X', data: header },
    ...(isExtended ? others : [first, ...others]),
    { name: 'EXIF', data: exif },
    { name: 'XMP ', data: xmp },
  ]);
}

/**
 * Removes EXIF and XMP, and the extended header if no other feature needs it. Returns the same bytes if the file has
 * neither EXIF nor XMP.
 */
export function withoutWebpBlocks(webp: Uint8Array): Uint8Array {
  const chunks = chunksOf(webp);
  const kept = chunks.filter(({ name }) => name !== 'EXIF' && name !== 'XMP ');
  const [header, image] = kept;
  if (kept.length === chunks.length || header?.name !== 'VP8X') return webp;
  const data = Buffer.from(header.data);
  data[0] = byteAt(data, 0) & ~(exifFlag | xmpFlag);
  const isSimple = kept.length === 2 && (data[0] === 0 || image?.name === 'VP8L');
  return riffOf(isSimple ? [image!] : [{ name: 'VP8X', data }, ...kept.slice(1)]);
}

/** Returns the chunks of a file. Drops a truncated last chunk. */
function chunksOf(webp: Uint8Array): Chunk[] {
  const view = Buffer.from(webp.buffer, webp.byteOffset, webp.byteLength);
  const chunks: Chunk[] = [];
  for (let at = riffBytes; at + frameBytes <= view.length;) {
    const length = view.readUInt32LE(at + 4);
    const data = view.subarray(at + frameBytes, at + frameBytes + length);
    if (data.length < length) break;
    chunks.push({ name: view.toString('latin1', at, at + 4), data });
    at += frameBytes + length + (length % 2);
  }
  return chunks;
}

function riffOf(chunks: readonly Chunk[]): Buffer {
  const parts = chunks.flatMap(({ name, data }) => {
    const chunkHeader = Buffer.alloc(frameBytes);
    chunkHeader.write(name, 'latin1');
    chunkHeader.writeUInt32LE(data.length, 4);
    return [chunkHeader, data, Buffer.alloc(data.length % 2)];
  });
  const riff = Buffer.alloc(riffBytes);
  riff.write('RIFF', 'latin1');
  riff.writeUInt32LE(
    parts.reduce((sum, { length }) => sum + length, 4),
    4,
  );
  riff.write('WEBP', 8, 'latin1');
  return Buffer.concat([riff, ...parts]);
}

/** Builds the extended header of a simple file from the size in its image chunk. */
function extendedHeaderOf({ name, data }: Chunk): Buffer {
  const isLossless = name === 'VP8L';
  // Width and height have 14 bits each. They follow a signature byte (lossless), or a frame tag and a start code of
  // three bytes each (lossy).
  const bits = isLossless ? data.readUInt32LE(1) : 0;
  const width = isLossless ? (bits & 0x3fff) + 1 : data.readUInt16LE(6) & 0x3fff;
  const height = isLossless ? ((bits >>> 14) & 0x3fff) + 1 : data.readUInt16LE(8) & 0x3fff;
  const hasAlpha = isLossless && ((bits >>> 28) & 1) === 1;
  const header = Buffer.alloc(headerBytes);
  header[0] = hasAlpha ? alphaFlag : 0;
  header.writeUIntLE(width - 1, 4, 3);
  header.writeUIntLE(height - 1, 7, 3);
  return header;
}
