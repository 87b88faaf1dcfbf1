import { lastItem, byteAt } from '@darkroom/core';
/**
 * Adds and removes EXIF and XMP in JPEG files: segments before the image data
 * (https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B).
 */

const exifName = Buffer.from('Exif\0\0', 'latin1');
const xmpName = Buffer.from('http://ns.adobe.com/xap/1.0/\0', 'latin1');
/** A marker and a length. */
const frameBytes = 4;
const maxSegmentBytes = 0xffff + 2;
const startOfScan = 0xda;
/** JFIF; must remain the first segment. */
const app0 = 0xe0;
const app1 = 0xe1;
/** Metadata segments: EXIF and XMP (APP1), IPTC (APP13), comments. */
const metadataMarkers = new Set([app1, 0xed, 0xfe]);

interface Segment {
  marker: number;
  start: number;
  end: number;
}

/** Yields the segments before the first scan; fewer if the file is broken. */
function* segmentsOf(jpeg: Buffer): Generator<Segment, void> {
  let start = jpeg[0] === 0xff && jpeg[1] === 0xd8 ? 2 : jpeg.length;
  while (start + frameBytes <= jpeg.length && jpeg[start] === 0xff && jpeg[start + 1] !== startOfScan) {
    const end = start + 2 + jpeg.readUInt16BE(start + 2);
    yield { marker: byteAt(jpeg, start + 1), start, end };
    start = end;
  }
}

/** Returns a JPEG file with both blocks. */
export function withJpegBlocks(jpeg: Uint8Array, { exif, xmp }: { exif: Buffer; xmp: Buffer }): Uint8Array {
  const view = Buffer.from(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  const [first] = segmentsOf(view);
  const at = first?.marker === app0 ? first.end : 2;
  const blocks = [segment(Buffer.concat([exifName, exif])), segment(Buffer.concat([xmpName, xmp]))];
  return Buffer.concat([view.subarray(0, at), ...blocks, view.subarray(at)]);
}

/** Returns the file without metadata segments; the same bytes if there are none. */
export function withoutJpegBlocks(jpeg: Uint8Array): Uint8Array {
  const view = Buffer.from(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  const segments = [...segmentsOf(view)];
  if (!segments.some(({ marker }) => metadataMarkers.has(marker))) return jpeg;
  const kept = segments.filter(({ marker }) => !metadataMarkers.has(marker));
  const rest = view.subarray(lastItem(segments).end);
  return Buffer.concat([view.subarray(0, 2), ...kept.map(({ start, end }) => view.subarray(start, end)), rest]);
}

function segment(content: Buffer): Buffer {
  const made = Buffer.alloc(frameBytes + content.length);
  if (made.length > maxSegmentBytes)
    throw new RangeError(`a segment of ${made.length} bytes does not fit into a JPEG file`);
  made.writeUInt16BE(0xff00 + app1, 0);
  made.writeUInt16BE(content.length + 2, 2);
  made.set(content, frameBytes);
  return made;
}
