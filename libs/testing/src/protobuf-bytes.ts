/** Minimal protobuf decoding and encoding, to change or damage ONNX files in tests. */

/** Rewrites the length-delimited fields of a message; `change` returns undefined to remove one. */
export function mapFields(message: Buffer, change: (number: number, content: Buffer) => Buffer | undefined): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < message.length;) {
    const start = at;
    const key = readVarint(message, at);
    at = key.next;
    const wireType = key.value % 8;
    if (wireType === 2) {
      const length = readVarint(message, at);
      at = length.next + length.value;
      const number = Math.floor(key.value / 8);
      const content = change(number, message.subarray(length.next, at));
      if (content !== undefined) parts.push(field(number, content));
      continue;
    }
    at = wireType === 0 ? readVarint(message, at).next : at + (wireType === 1 ? 8 : 4);
    parts.push(message.subarray(start, at));
  }
  return Buffer.concat(parts);
}

/** Returns the fields with this number as text. */
export function textFieldsOf(message: Buffer, wanted: number): string[] {
  const texts: string[] = [];
  mapFields(message, (number, content) => {
    if (number === wanted) texts.push(content.toString());
    return content;
  });
  return texts;
}

/** Encodes a length-delimited field. */
export function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}

function readVarint(message: Buffer, at: number): { value: number; next: number } {
  let value = 0;
  for (let next = at, factor = 1; ; factor *= 128) {
    const byte = message[next++]!;
    value += (byte % 128) * factor;
    if (byte < 128) return { value, next };
  }
}
