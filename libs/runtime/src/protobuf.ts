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

/** A field with a length, of what is in it one after the other. */
export function fieldOf(number: number, contents: readonly Uint8Array[]): Uint8Array {
  const length = contents.reduce((sum, content) => sum + content.length, 0);
  const head = [...varintOf(number * 8 + lengthDelimited), ...varintOf(length)];
  const field = new Uint8Array(head.length + length);
  field.set(head);
  let at = head.length;
  for (const content of contents) {
    field.set(content, at);
    at += content.length;
  }
  return field;
}

/** A field that is a number. */
export function numberField(number: number, value: number): Uint8Array {
  return Uint8Array.from([...varintOf(number * 8 + varint), ...varintOf(value)]);
}

function varintOf(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varintOf(Math.floor(value / 128))];
}
