/**
 * Builds EXIF blocks: TIFF fields in big-endian order, as piexif writes them
 * (https://www.cipa.jp/std/documents/download_e.html?DC-008-Translation-2023-E).
 */

interface Field {
  tag: number;
  type: number;
  /** In units of the type. */
  count: number;
  data: Buffer;
}

const [ascii, long, undefinedBytes] = [2, 4, 7];
const headerBytes = 8;
const fieldBytes = 12;

/**
 * Builds a block with software and user comment, the fields that tools for generated images read in JPEG and WebP
 * files.
 */
export function exifOf({ software, userComment }: { software: string; userComment: string }): Buffer {
  const name = { tag: 0x0131, type: ascii, ...counted(Buffer.from(`${software}\0`, 'latin1')) };
  const version = { tag: 0x9000, type: undefinedBytes, ...counted(Buffer.from('0232', 'latin1')) };
  const words = Buffer.from(userComment, 'utf16le').swap16();
  const comment = {
    tag: 0x9286,
    type: undefinedBytes,
    ...counted(Buffer.concat([Buffer.from('UNICODE\0', 'latin1'), words])),
  };
  // The first directory has a pointer to the second one, which starts at its end.
  const pointerTo = (at: number): Field => ({ tag: 0x8769, type: long, count: 1, data: uint32(at) });
  const innerAt = headerBytes + directory([name, pointerTo(0)], headerBytes).length;
  const outer = directory([name, pointerTo(innerAt)], headerBytes);
  return Buffer.concat([
    Buffer.from('MM\0*', 'latin1'),
    uint32(headerBytes),
    outer,
    directory([version, comment], innerAt),
  ]);
}

/** Builds a directory. @param fields in the order of their tags. @param at its offset in the block. */
function directory(fields: readonly Field[], at: number): Buffer {
  const fixed = Buffer.alloc(2 + fields.length * fieldBytes + 4);
  const behind: Buffer[] = [];
  let next = at + fixed.length;
  fixed.writeUInt16BE(fields.length, 0);
  for (const [index, { tag, type, count, data }] of fields.entries()) {
    const offset = 2 + index * fieldBytes;
    fixed.writeUInt16BE(tag, offset);
    fixed.writeUInt16BE(type, offset + 2);
    fixed.writeUInt32BE(count, offset + 4);
    if (data.length <= 4) fixed.set(data, offset + 8);
    else {
      fixed.writeUInt32BE(next, offset + 8);
      // Offsets are even.
      const padded = data.length % 2 === 0 ? data : Buffer.concat([data, Buffer.alloc(1)]);
      behind.push(padded);
      next += padded.length;
    }
  }
  return Buffer.concat([fixed, ...behind]);
}

function counted(data: Buffer): { count: number; data: Buffer } {
  return { count: data.length, data };
}

function uint32(value: number): Buffer {
  const data = Buffer.alloc(4);
  data.writeUInt32BE(value);
  return data;
}
