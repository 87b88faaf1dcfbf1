/** The subset of protobuf's wire format that is needed to split and rebuild messages. */

/** A field of a message, as views of its bytes. */
export interface WireField {
  readonly number: number;
  /** The field with its tag. */
  readonly bytes: Uint8Array;
  /** The payload of a length-delimited field. */
  readonly content: Uint8Array;
  /** The value of a varint field. */
  readonly value: number;
}

const varint = 0;
const lengthDelimited = 2;
/** Payload sizes of the fixed-width wire types, bytes. */
const widths: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

/** @throws RangeError if it is not protobuf. */
export function* fieldsOf(bytes: Uint8Array): Generator<WireField> {
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError('the protobuf data ends within a field');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const start = at;
    const tag = readVarint();
    const kind = tag & 7;
    const value = kind === varint || kind === lengthDelimited ? readVarint() : 0;
    const length = kind === varint ? 0 : kind === lengthDelimited ? value : widths[kind];
    if (length === undefined || at + length > bytes.length)
      throw new RangeError(`invalid protobuf field at byte ${start}`);
    const content = bytes.subarray(at, at + length);
    at += length;
    yield { number: Math.floor(tag / 8), bytes: bytes.subarray(start, at), content, value };
  }
}

/** Encodes a field that holds a string, bytes or a message. */
export function bytesField(number: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([bytesHeader(number, bytes.length), bytes]);
}

/** Encodes what precedes the payload of such a field. */
export function bytesHeader(number: number, length: number): Buffer {
  return Buffer.concat([encodeVarint(number * 8 + 2), encodeVarint(length)]);
}

/** Encodes a field that holds a non-negative number. */
export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([encodeVarint(number * 8), encodeVarint(value)]);
}

function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}
