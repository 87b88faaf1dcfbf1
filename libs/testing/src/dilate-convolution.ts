import { readFileSync, writeFileSync } from 'node:fs';
import { field, mapFields, textsOf } from './protobuf-bytes.ts';

/** ONNX's number of attributes that are lists of whole numbers. */
const intsAttribute = 7;

/** Which convolution of 3 × 3 pixels, by the name of its weights, and how far apart it reads them. */
export interface DilateConvolutionOptions {
  weights: string;
  dilation: number;
}

/** Has a convolution of an `.onnx` file read pixels further away. What it gives has the size that it had. */
export function dilateConvolution(file: string, { weights, dilation }: DilateConvolutionOptions): void {
  const changed = new Map([
    ['dilations', [dilation, dilation]],
    ['pads', [dilation, dilation, dilation, dilation]],
  ]);
  const attributeOf = (attribute: Buffer): Buffer => {
    const name = textsOf(attribute, 1)[0]!;
    const ints = changed.get(name);
    if (ints === undefined) return attribute;
    const type = Buffer.from([160, 1, intsAttribute]);
    return Buffer.concat([field(1, Buffer.from(name)), field(8, Buffer.from(ints)), type]);
  };
  const nodeOf = (node: Buffer): Buffer =>
    textsOf(node, 1).includes(weights)
      ? mapFields(node, (number, content) => (number === 5 ? attributeOf(content) : content))
      : node;
  const graphOf = (graph: Buffer): Buffer =>
    mapFields(graph, (number, content) => (number === 1 ? nodeOf(content) : content));
  writeFileSync(
    file,
    mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content)),
  );
}
