/** Texts in PNG files (https://www.w3.org/TR/png-3/#11textinfo). */
import { crc32 } from 'node:zlib';

const signature = Buffer.from('\x89PNG\r\n\x1A\n', 'latin1');
const signatureBytes = signature.length;
/** Length, type and checksum of a chunk. */
const frameBytes = 12;
/** After the signature and the header, which has to be the first chunk. */
const firstPlace = signatureBytes + frameBytes + 13;
/** What says something about a picture and is no part of it. */
const sayings = new Set(['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME']);

/** A PNG file with more texts, by keyword, before its pixels. */
export function withPngTexts(png: Uint8Array, texts: Readonly<Record<string, string>>): Uint8Array {
  const chunks = Object.entries(texts).map(([keyword, text]) => textChunk(keyword, text));
  return Buffer.concat([png.subarray(0, firstPlace), ...chunks, png.subarray(firstPlace)]);
}

/** The same without any texts; itself where there are none. */
export function withoutPngTexts(png: Uint8Array): Uint8Array {
  const view = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  if (!view.subarray(0, signatureBytes).equals(signature)) return png;
  const kept: Uint8Array[] = [view.subarray(0, signatureBytes)];
  let at = signatureBytes;
  // What a broken file ends with stays what it is.
  while (at + frameBytes <= view.length) {
    const end = Math.min(view.length, at + frameBytes + view.readUInt32BE(at));
    if (!sayings.has(view.toString('latin1', at + 4, at + 8))) kept.push(view.subarray(at, end));
    at = end;
  }
  kept.push(view.subarray(at));
  return kept.reduce((sum, { length }) => sum + length, 0) === png.length ? png : Buffer.concat(kept);
}

/** `tEXt` where Latin-1 is enough, as every reader knows it; else `iTXt`. */
function textChunk(keyword: string, text: string): Buffer {
  const isLatin1 = /^[\n\u0020-\u007e\u00a0-\u00ff]*$/.test(text);
  if (isLatin1) return chunk('tEXt', Buffer.from(`${keyword}\0${text}`, 'latin1'));
  // Not compressed, of no language, without another keyword.
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
