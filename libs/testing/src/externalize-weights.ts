import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { field, mapFields } from './protobuf-bytes.ts';

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
