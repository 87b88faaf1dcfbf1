import { readFileSync, writeFileSync } from 'node:fs';
import { field, mapFields } from './protobuf-bytes.ts';

/** ONNX enum values: element type and attribute type. */
const float32 = 1;
const tensorAttribute = 4;

/** The graph's output and the size of the added weights. */
export interface AddWeightsOptions {
  /** Output that the weights are multiplied with, and its width. */
  output: string;
  width: number;
  /** Number of added matrices, 16 MiB each. */
  matrices: number;
}

/**
 * Adds weights to an `.onnx` file whose product is multiplied by 0. The graph's only output becomes `heavy`: the given
 * output plus that product.
 */
export function addWeights(file: string, { output, width, matrices }: AddWeightsOptions): void {
  const side = 2048;
  const widths = [width, ...Array.from({ length: matrices + 1 }, () => side), width];
  const nodes: Buffer[] = [];
  let last = output;
  for (const [at, columns] of widths.slice(1).entries()) {
    nodes.push(
      constant(`weights_${at}`, [widths[at]!, columns]),
      node('MatMul', [last, `weights_${at}`], `heavy_${at}`),
    );
    last = `heavy_${at}`;
  }
  nodes.push(constant('nothing', [1]), node('Mul', [last, 'nothing'], 'heavy_nothing'));
  nodes.push(node('Add', [output, 'heavy_nothing'], 'heavy'));
  const type = field(1, Buffer.from([8, float32]));
  const heavy = field(12, Buffer.concat([field(1, Buffer.from('heavy')), field(2, type)]));
  const graphOf = (graph: Buffer): Buffer => {
    const kept = mapFields(graph, (number, content) => (number === 12 ? undefined : content));
    return Buffer.concat([kept, ...nodes.map((content) => field(1, content)), heavy]);
  };
  writeFileSync(
    file,
    mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content)),
  );
}

function node(operator: string, inputs: readonly string[], output: string, attribute?: Buffer): Buffer {
  return Buffer.concat([
    ...inputs.map((input) => field(1, Buffer.from(input))),
    field(2, Buffer.from(output)),
    field(4, Buffer.from(operator)),
    ...(attribute === undefined ? [] : [field(5, attribute)]),
  ]);
}

/** Creates a constant of zeros. */
function constant(name: string, shape: readonly number[]): Buffer {
  const values = Buffer.alloc(shape.reduce((product, side) => product * side, 4));
  const dims = field(1, Buffer.concat(shape.map(varint)));
  const tensor = Buffer.concat([dims, Buffer.from([16, float32]), field(9, values)]);
  const attribute = Buffer.concat([
    field(1, Buffer.from('value')),
    field(5, tensor),
    Buffer.from([160, 1, tensorAttribute]),
  ]);
  return node('Constant', [], name, attribute);
}

function varint(value: number): Buffer {
  return Buffer.from(value < 128 ? [value] : [(value % 128) + 128, Math.floor(value / 128)]);
}
