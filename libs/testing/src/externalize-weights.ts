import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Smaller tensors stay where they are, as exporters leave them. */
const leastBytes = 1024;

/**
 * Rewrites an `.onnx` file so that its weights lie in a file beside it, as exporters do for graphs of more than two
 * gigabytes.
 *
 * @param location what the graph calls that file, and its name unless `writeTo` says otherwise.
 * @param firstByte where the first of them lies in that file; what is before is a hole, which takes no disk.
 */
export function externalizeWeights(file: string, location: string, { writeTo = location, firstByte = 0 } = {}): void {
  const weights: Buffer[] = [];
  let offset = firstByte;
  const graphOf = (graph: Buffer): Buffer =>
    mapFields(graph, (number, content) => (number === 5 ? tensorOf(content) : content));
  const tensorOf = (tensor: Buffer): Buffer => {
    let raw: Buffer | undefined;
    const rest = mapFields(tensor, (number, content) => {
      if (number !== 9 || content.length < leastBytes) return content;
      raw = content;
      return undefined;
    });
    if (raw === undefined) return tensor;
    weights.push(raw);
    const entries = { location, offset: String(offset), length: String(raw.length) };
    offset += raw.length;
    const external = Object.entries(entries).map(([key, value]) =>
      field(13, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))])),
    );
    return Buffer.concat([rest, ...external, Buffer.from([14 * 8, 1])]);
  };
  const model = mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content));
  writeFileSync(file, model);
  const outside = openSync(join(dirname(file), writeTo), 'w');
  writeSync(outside, Buffer.concat(weights), 0, undefined, firstByte);
  closeSync(outside);
}

/** A message with the content of its nested fields changed; undefined leaves one out. */
function mapFields(message: Buffer, change: (number: number, content: Buffer) => Buffer | undefined): Buffer {
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

function field(number: number, content: Buffer): Buffer {
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
