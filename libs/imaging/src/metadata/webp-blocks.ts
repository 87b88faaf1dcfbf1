/** EXIF and XMP in WebP files (https://developers.google.com/speed/webp/docs/riff_container). */

const riffBytes = 12;
const frameBytes = 8;
/** Of the extended header; the size of a simple file's picture stands in no more. */
const headerBytes = 10;
/** Flags of the extended header. */
const [exifFlag, xmpFlag, alphaFlag] = [0x08, 0x04, 0x10];

interface Chunk {
  name: string;
  data: Buffer;
}

/** A WebP file with both blocks. It needs a header then that says so, which simple files do not have. */
export function withWebpBlocks(webp: Uint8Array, { exif, xmp }: { exif: Buffer; xmp: Buffer }): Uint8Array {
  const [first, ...others] = chunksOf(webp);
  if (first === undefined || first.data.length < headerBytes) return webp;
  const isExtended = first.name === 'VP8X';
  const header = isExtended ? Buffer.from(first.data) : headerOf(first);
  header[0]! |= exifFlag | xmpFlag;
  return riffOf([
    { name: 'VP8X', data: header },
    ...(isExtended ? others : [first, ...others]),
    { name: 'EXIF', data: exif },
    { name: 'XMP ', data: xmp },
  ]);
}

/** The same without such blocks, and simple again where nothing else is left; itself where there are none. */
export function withoutWebpBlocks(webp: Uint8Array): Uint8Array {
  const chunks = chunksOf(webp);
  const kept = chunks.filter(({ name }) => name !== 'EXIF' && name !== 'XMP ');
  const [header, picture] = kept;
  if (kept.length === chunks.length || header?.name !== 'VP8X') return webp;
  const data = Buffer.from(header.data);
  data[0]! &= ~(exifFlag | xmpFlag);
  const isSimple = kept.length === 2 && (data[0] === 0 || picture?.name === 'VP8L');
  return riffOf(isSimple ? [picture!] : [{ name: 'VP8X', data }, ...kept.slice(1)]);
}

/** What is cut off at the end is not among them. */
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
    const frame = Buffer.alloc(frameBytes);
    frame.write(name, 'latin1');
    frame.writeUInt32LE(data.length, 4);
    return [frame, data, Buffer.alloc(data.length % 2)];
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

/** The extended header of a simple file, whose only chunk knows its size. */
function headerOf({ name, data }: Chunk): Buffer {
  const isLossless = name === 'VP8L';
  // After a signature of one byte, or behind three bytes of a frame's head and three of a mark: 14 bits each.
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
