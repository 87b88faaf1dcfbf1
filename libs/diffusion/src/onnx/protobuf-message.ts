/** Writes protobuf messages, as far as ONNX graphs need it. */

/** A field that holds a text, bytes or a message. */
export function bytesField(number: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([bytesHeader(number, bytes.length), bytes]);
}

/** What comes before the content of such a field. */
export function bytesHeader(number: number, length: number): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(length)]);
}

/** A field that holds a number, not negative. */
export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}
