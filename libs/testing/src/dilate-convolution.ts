import { readFileSync, writeFileSync } from 'node:fs';
import { field, mapFields, textFieldsOf } from './protobuf-bytes.ts';

/** ONNX enum value of attributes that are lists of integers. */
const intsAttribute = 7;

/** A 3 × 3 convolution, by the name of its weights, and its new dilation. */
export interface DilateConvolutionOptions {
  weights: string;
  dilation: number;
}

/** Sets the dilation of a convolution in an `.onnx` file. The output keeps its size. */
export function dilateConvolution(file: string, { weights, dilation }: DilateConvolutionOptions): void {
  const changed = new Map([
    ['dilations', [dilation, dilation]],
    ['pads', [dilation, dilation, dilation, dilation]],
  ]);
  const attributeOf = (attribute: Buffer): Buffer => {
    const name = textFieldsOf(attribute, 1)[0]!;
    const ints = changed.get(name);
    if (ints === undefined) return attribute;
    const type = Buffer.from([160, 1, intsAttribute]);
    return Buffer.concat([field(1, Buffer.from(name)), field(8, Buffer.from(ints)), type]);
  };
  const nodeOf = (node: Buffer): Buffer =>
    textFieldsOf(node, 1).includes(weights)
      ? mapFields(node, (number, content) => (number === 5 ? attributeOf(content) : content))
      : node;
  const graphOf = (graph: Buffer): Buffer =>
    mapFields(graph, (number, content) => (number === 1 ? nodeOf(content) : content));
  writeFileSync(
    file,
    mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content)),
  );
}
