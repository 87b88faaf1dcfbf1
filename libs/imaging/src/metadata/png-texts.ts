/** Adds and removes texts in PNG files (https://www.w3.org/TR/png-3/#11textinfo). */
import { crc32 } from 'node:zlib';

const signature = Buffer.from('\x89PNG\r\n\x1A\n', 'latin1');
const signatureBytes = signature.length;
/** Length, type and checksum of a chunk. */
const frameBytes = 12;
/** Offset after the signature and the header, which must be the first chunk. */
const firstChunkOffset = signatureBytes + frameBytes + 13;
/** Metadata chunks, which do not influence the pixels. */
const metadataTypes = new Set(['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME']);

/** Returns a PNG file with texts, by keyword, before its pixels. */
export function withPngTexts(png: Uint8Array, texts: Readonly<Record<string, string>>): Uint8Array {
  const chunks = Object.entries(texts).map(([keyword, text]) => textChunk(keyword, text));
  return Buffer.concat([png.subarray(0, firstChunkOffset), ...chunks, png.subarray(firstChunkOffset)]);
}

/** Returns the file without texts; the same bytes if there are none. */
export function withoutPngTexts(png: Uint8Array): Uint8Array {
  const view = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  if (!view.subarray(0, signatureBytes).equals(signature)) return png;
  const kept: Uint8Array[] = [view.subarray(0, signatureBytes)];
  let at = signatureBytes;
  // The incomplete end of a broken file is not changed.
  while (at + frameBytes <= view.length) {
    const end = Math.min(view.length, at + frameBytes + view.readUInt32BE(at));
    if (!metadataTypes.has(view.toString('latin1', at + 4, at + 8))) kept.push(view.subarray(at, end));
    at = end;
  }
  kept.push(view.subarray(at));
  return kept.reduce((sum, { length }) => sum + length, 0) === png.length ? png : Buffer.concat(kept);
}

/** Builds `tEXt` if Latin-1 suffices, because every reader supports it; otherwise `iTXt`. */
function textChunk(keyword: string, text: string): Buffer {
  const isLatin1 = /^[\n\u0020-\u007e\u00a0-\u00ff]*$/.test(text);
  if (isLatin1) return chunk('tEXt', Buffer.from(`${keyword}\0${text}`, 'latin1'));
  // Uncompressed, without language and translated keyword.
  return chunk('iTXt', Buffer.from(`${keyword}\0\0\0\0\0${text}`, 'utf8'));
}

function chunk(type: string, data: Uint8Array): Buffer {
  const made = Buffer.alloc(frameBytes + data.length);
  made.writeUInt32BE(data.length, 0);
  made.write(type, 4, 'latin1');
  made.set(data, 8);
  made.writeUInt32BE(crc32(made.subarray(4, 8 + data.length)), 8 + data.length);
  return made;
}
