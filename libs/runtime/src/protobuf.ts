/** As much of protobuf's wire format as it takes to take messages apart and to put them together again. */

/** A field of a message, where it lies in the bytes. */
export interface WireField {
  readonly number: number;
  /** With its tag. */
  readonly whole: Uint8Array;
  /** Of a field with a length: what is in it. */
  readonly content: Uint8Array;
  /** Of a field that is a number. */
  readonly value: number;
}

const varint = 0;
const lengthDelimited = 2;
/** Bytes of the other kinds of fields. */
const widths: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

/** @throws RangeError if it is not protobuf. */
export function* fieldsOf(bytes: Uint8Array): Generator<WireField> {
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError('the bytes end within a field');
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
    if (length === undefined || at + length > bytes.length) throw new RangeError(`no field begins at byte ${start}`);
    const content = bytes.subarray(at, at + length);
    at += length;
    yield { number: Math.floor(tag / 8), whole: bytes.subarray(start, at), content, value };
  }
}

/** A field that holds a text, bytes or a message. */
export function bytesField(number: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([bytesHeader(number, bytes.length), bytes]);
}

/** What comes before the content of such a field. */
export function bytesHeader(number: number, length: number): Buffer {
  return Buffer.concat([encodeVarint(number * 8 + 2), encodeVarint(length)]);
}

/** A field that holds a number, not negative. */
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
