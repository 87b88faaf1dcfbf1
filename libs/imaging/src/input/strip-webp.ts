/** WebP: https://developers.google.com/speed/webp/docs/riff_container */
import { byteAt } from '@darkroom/core';
import type { ImageSize } from './image-refusal.ts';
import { KeptParts } from './kept-parts.ts';
import { broken, maxExifBytes, maxParts, maxProfileBytes, type StripResult } from './strip-result.ts';

const riffBytes = 12;
/** Name and length of a chunk. */
const frameBytes = 8;
const maxChunkBytes = 2 ** 32;
/** Flags of the extended header. */
const flags = { animation: 0x02, exif: 0x08, alpha: 0x10, profile: 0x20 } as const;

/** Chunks to retain, once each, with their maximum data size in bytes; larger ones are removed. */
const retainedChunks: ReadonlyMap<string, number> = new Map([
  ['VP8X', 10],
  ['ICCP', maxProfileBytes],
  ['ALPH', maxChunkBytes],
  ['VP8 ', maxChunkBytes],
  ['VP8L', maxChunkBytes],
  ['EXIF', maxExifBytes],
]);

export function stripWebp(file: Buffer): StripResult {
  const kept = new KeptParts(file);
  kept.retain(0, riffBytes);
  const found = new Set<string>();
  let size: ImageSize = { width: 0, height: 0 };
  let isAnimated = false;
  let parts = 0;
  for (let at = riffBytes; at + frameBytes <= file.length;) {
    if ((parts += 1) > maxParts) return broken;
    const name = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const end = at + frameBytes + length + (length % 2);
    if (end > file.length) return broken;
    const data = file.subarray(at + frameBytes, at + frameBytes + length);
    isAnimated ||= name === 'ANIM' || name === 'ANMF' || (name === 'VP8X' && (byteAt(data, 0) & flags.animation) !== 0);
    if (name === 'VP8X' && kept.length > riffBytes) return broken;
    if (!found.has(name) && length <= (retainedChunks.get(name) ?? -1)) {
      found.add(name);
      size = larger(size, sizeOf(name, data));
      kept.retain(at, end);
    }
    at = end;
  }
  if (isAnimated) return { status: 'stripped', ...size, isAnimated, bytes: kept.bytes };
  if (!found.has('VP8 ') && !found.has('VP8L')) return broken;
  const { bytes } = kept;
  bytes.writeUInt32LE(bytes.length - frameBytes, 4);
  if (found.has('VP8X')) writeFlags(bytes, found);
  return { status: 'stripped', ...size, isAnimated, bytes };
}

/** Updates the flags of the extended header, the first chunk, to the retained chunks. */
function writeFlags(bytes: Buffer, found: ReadonlySet<string>): void {
  const at = riffBytes + frameBytes;
  const profile = found.has('ICCP') ? flags.profile : 0;
  const exif = found.has('EXIF') ? flags.exif : 0;
  bytes[at] = (byteAt(bytes, at) & flags.alpha) | profile | exif;
}

/** Returns the size in the extended header or in the image data. Decoders refuse a file in which they differ. */
function sizeOf(name: string, data: Buffer): ImageSize {
  if (data.length < 10) return { width: 0, height: 0 };
  if (name === 'VP8X') return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 };
  if (name === 'VP8 ') return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff };
  if (name !== 'VP8L') return { width: 0, height: 0 };
  const bits = data.readUInt32LE(1);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

function larger(one: ImageSize, other: ImageSize): ImageSize {
  return { width: Math.max(one.width, other.width), height: Math.max(one.height, other.height) };
}
