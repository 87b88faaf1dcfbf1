/**
 * The bytes of a checkpoint: a JSON header of facts, then arrays of float32, so that what is stored is little more than the
 * latents themselves.
 *
 *     u32 length of header | header, UTF-8, filled up with spaces to a multiple of 4 | array 0 | array 1 | …
 *
 * Little-endian, as every machine is that Node runs on.
 */

const headerPrefix = 4;

/** A row's state as plain data. All arrays have one length. */
export interface RowSnapshot<Facts> {
  readonly facts: Facts;
  readonly arrays: readonly Float32Array[];
}

/** Writes a snapshot; the arrays are copied. */
export function encodeRowSnapshot<Facts>({ facts, arrays }: RowSnapshot<Facts>): Uint8Array {
  const json = JSON.stringify(facts);
  const header = Buffer.from(json);
  const start = headerPrefix + Math.ceil(header.length / 4) * 4;
  const data = Buffer.alloc(start + arrays.reduce((total, array) => total + array.byteLength, 0), ' ');
  data.writeUInt32LE(start - headerPrefix, 0);
  header.copy(data, headerPrefix);
  let offset = start;
  for (const array of arrays) {
    data.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset);
    offset += array.byteLength;
  }
  return new Uint8Array(data.buffer, data.byteOffset, data.length);
}

/**
 * Reads a snapshot; the arrays are copies.
 *
 * @param arrayLength of each array.
 * @returns undefined if the bytes are not a snapshot of such arrays.
 */
export function decodeRowSnapshot(data: Uint8Array, arrayLength: number): RowSnapshot<unknown> | undefined {
  const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (buffer.length < headerPrefix) return undefined;
  const start = headerPrefix + buffer.readUInt32LE(0);
  const arrayBytes = arrayLength * Float32Array.BYTES_PER_ELEMENT;
  if (start > buffer.length || (buffer.length - start) % arrayBytes !== 0) return undefined;
  const arrays: Float32Array[] = [];
  for (let offset = start; offset < buffer.length; offset += arrayBytes) {
    const array = new Float32Array(arrayLength);
    new Uint8Array(array.buffer).set(buffer.subarray(offset, offset + arrayBytes));
    arrays.push(array);
  }
  try {
    return { facts: JSON.parse(buffer.toString('utf8', headerPrefix, start)) as unknown, arrays };
  } catch {
    return undefined;
  }
}
