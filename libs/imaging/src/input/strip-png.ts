/** PNG: https://www.w3.org/TR/png-3 */
import { inflateSync } from 'node:zlib';
import { KeptParts } from './kept-parts.ts';
import { broken, maxExifBytes, maxParts, maxProfileBytes, type StripResult } from './strip-result.ts';

const signatureBytes = 8;
/** Length, type and checksum of a chunk. */
const frameBytes = 12;
const headerBytes = 13;

/** Chunks to retain, once each, with their maximum data size in bytes; larger ones are removed. */
const retainedChunks: ReadonlyMap<string, number> = new Map([
  ['IHDR', headerBytes],
  ['PLTE', 768],
  ['tRNS', 768],
  ['gAMA', 4],
  ['cHRM', 32],
  ['sRGB', 1],
  ['iCCP', maxProfileBytes],
  ['eXIf', maxExifBytes],
]);

export function stripPng(file: Buffer): StripResult {
  const start = signatureBytes + 8;
  if (file.length < start + headerBytes || file.toString('latin1', signatureBytes + 4, start) !== 'IHDR') return broken;
  const size = { width: file.readUInt32BE(start), height: file.readUInt32BE(start + 4) };
  const kept = new KeptParts(file);
  kept.retain(0, signatureBytes);
  const seen = new Set<string>();
  let isAnimated = false;
  let parts = 0;
  for (let at = signatureBytes; at + frameBytes <= file.length;) {
    if ((parts += 1) > maxParts) return broken;
    const type = file.toString('latin1', at + 4, at + 8);
    const end = at + frameBytes + file.readUInt32BE(at);
    if (end > file.length) return broken;
    if (type === 'IDAT' || type === 'IEND' || isKept(type, file.subarray(at + 8, end - 4), seen)) kept.retain(at, end);
    // The decoder would silently read only the first image of an animation.
    isAnimated ||= type === 'acTL' && !seen.has('IDAT');
    if (type === 'IDAT' || retainedChunks.has(type)) seen.add(type);
    if (type === 'IEND') return { status: 'stripped', ...size, isAnimated, bytes: kept.bytes };
    at = end;
  }
  return broken;
}

function isKept(type: string, data: Buffer, seen: ReadonlySet<string>): boolean {
  if (seen.has(type) || data.length > (retainedChunks.get(type) ?? -1)) return false;
  return type !== 'iCCP' || isSmallProfile(data);
}

/**
 * Checks the size of a profile after decompression. The chunk has a name, a byte for the compression method, and the
 * compressed profile.
 */
function isSmallProfile(data: Buffer): boolean {
  try {
    inflateSync(data.subarray(data.indexOf(0) + 2), { maxOutputLength: maxProfileBytes });
    return true;
  } catch {
    return false;
  }
}
