/** JPEG: https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B */
import { KeptParts } from './kept-parts.ts';
import { refused } from './image-refusal.ts';
import { broken, maxParts, maxProfileBytes, type StripResult } from './strip-result.ts';

/**
 * Progressive files of common programs have about ten scans. Each costs a pass over all pixels, however few bytes it
 * has.
 */
const maxScans = 32;

const [startOfImage, endOfImage, startOfScan] = [0xd8, 0xd9, 0xda];
/** Quantization and Huffman tables, arithmetic conditioning, number of lines, restart interval. */
const tables = new Set([0xdb, 0xc4, 0xcc, 0xdc, 0xdd]);
const [jfif, exifOrXmp, profile, adobe] = [0xe0, 0xe1, 0xe2, 0xee];
const exifName = 'Exif\0\0';
const profileName = 'ICC_PROFILE\0';

interface Frame {
  width: number;
  height: number;
}

export function stripJpeg(file: Buffer): StripResult {
  const kept = new KeptParts(file);
  kept.retain(0, 2);
  const seen = { parts: 0, scans: 0, profileBytes: 0, applications: new Set<number>() };
  let frame: Frame | undefined;
  for (let at = file.indexOf(0xff, 2); at !== -1 && at + 1 < file.length; at = file.indexOf(0xff, at)) {
    // Fill bytes.
    while (file[at + 1] === 0xff) at += 1;
    if ((seen.parts += 1) > maxParts) return broken;
    const marker = file[at + 1] ?? endOfImage;
    if (marker === endOfImage) {
      kept.retain(at, at + 2);
      break;
    }
    if (isAlone(marker)) {
      at += 2;
      continue;
    }
    const end = at + 2 + (at + 4 <= file.length ? file.readUInt16BE(at + 2) : file.length);
    if (end < at + 4 || end > file.length) return broken;
    if (isFrame(marker)) {
      if (frame !== undefined || end < at + 9) return broken;
      frame = { height: file.readUInt16BE(at + 5), width: file.readUInt16BE(at + 7) };
    }
    const next = marker === startOfScan ? endOfScan(file, end) : end;
    if (isKept(marker, file.subarray(at + 4, end), seen)) kept.retain(at, next);
    at = next;
  }
  if (frame === undefined || seen.scans === 0) return broken;
  if (seen.scans > maxScans) return refused(`a JPEG of ${seen.scans} scans`, `at most ${maxScans} scans`);
  if (seen.profileBytes > maxProfileBytes)
    return refused('a JPEG with too large a color profile', `a profile of at most ${maxProfileBytes} bytes`);
  return { status: 'stripped', ...frame, isAnimated: false, bytes: kept.bytes };
}

/** Returns true for markers without a length: restarts, and markers without meaning here. */
function isAlone(marker: number): boolean {
  return marker <= 0x01 || (marker >= 0xd0 && marker <= startOfImage);
}

/** Returns true for all kinds of frames; the decoder refuses unsupported ones. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

function isKept(
  marker: number,
  data: Buffer,
  seen: { scans: number; profileBytes: number; applications: Set<number> },
): boolean {
  if (marker === startOfScan) return (seen.scans += 1) <= maxScans;
  if (isFrame(marker) || tables.has(marker)) return true;
  if (marker === profile && startsWith(data, profileName)) {
    seen.profileBytes += data.length;
    return seen.profileBytes <= maxProfileBytes;
  }
  const isKnown = marker === jfif || marker === adobe || (marker === exifOrXmp && startsWith(data, exifName));
  if (!isKnown || seen.applications.has(marker)) return false;
  seen.applications.add(marker);
  return true;
}

function startsWith(data: Buffer, name: string): boolean {
  return data.toString('latin1', 0, name.length) === name;
}

/**
 * Returns the position of the marker after a scan's data. Within the data, 0xff is always followed by 0 or a restart
 * number.
 */
function endOfScan(file: Buffer, start: number): number {
  for (let at = start; at < file.length;) {
    if (file[at] !== 0xff) {
      at = file.indexOf(0xff, at);
      if (at === -1) break;
    }
    const next = file[at + 1] ?? 0;
    if (next === 0xff) at += 1;
    else if (next === 0 || (next >= 0xd0 && next <= 0xd7)) at += 2;
    else return at;
  }
  return file.length;
}
