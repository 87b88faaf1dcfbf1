import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { field, mapFields } from './protobuf-bytes.ts';

/** Smaller tensors stay in the graph, as exporters do it. */
const minBytes = 1024;

/**
 * Rewrites an `.onnx` file so that its weights are in an external file, as exporters do for graphs over two gigabytes.
 *
 * @param location path of that file in the graph, and its name unless `writeTo` differs.
 * @param firstByte offset of the first weights; the bytes before it are a hole in a sparse file.
 */
export function externalizeWeights(file: string, location: string, { writeTo = location, firstByte = 0 } = {}): void {
  const weights: Buffer[] = [];
  let offset = firstByte;
  const graphOf = (graph: Buffer): Buffer =>
    mapFields(graph, (number, content) => (number === 5 ? tensorOf(content) : content));
  const tensorOf = (tensor: Buffer): Buffer => {
    let raw: Buffer | undefined;
    const rest = mapFields(tensor, (number, content) => {
      if (number !== 9 || content.length < minBytes) return content;
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
