/**
 * What an `.onnx` file says of itself: inputs, outputs, nodes, and of its weights everything but the numbers. Field numbers
 * are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
 */
import { bytesField, numberField } from '@darkroom/runtime/protobuf';
import { type ByteRange, ProtobufError, ProtobufFile, type ProtobufMessage } from './protobuf-file.ts';

export interface OnnxValue {
  readonly name: string;
  /** A name, or undefined, stands for a dimension that varies. */
  readonly shape: readonly (number | string | undefined)[];
}

/** A weight or another constant. */
export interface OnnxTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Its elements. */
  readonly count: number;
  /** ONNX's number of the element type: 1 for float32, 10 for float16. */
  readonly dataType: number;
  /** Bytes of it inside the file; undefined if they lie elsewhere or are written as numbers. */
  readonly rawBytes: number | undefined;
  /** Where its bytes lie outside; undefined if they are inside. */
  readonly external: ExternalData | undefined;
  /** Where it itself lies. */
  readonly range: ByteRange;
}

export interface ExternalData {
  /** As the file says it: relative to its folder. */
  readonly location: string;
  readonly offset: number;
  /** undefined: to the end of that file. */
  readonly length: number | undefined;
}

/** One node; an input that is left out has the name ''. */
export interface OnnxNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** What of them is a float or a tensor. */
  readonly attributes: ReadonlyMap<string, { readonly float?: number; readonly tensor?: OnnxTensor }>;
  readonly range: ByteRange;
}

export interface OnnxFile {
  readonly path: string;
  /** In the order of the file, in which each comes after what it reads. */
  readonly nodes: readonly OnnxNode[];
  /** Those that are weights too are left out. */
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly weights: ReadonlyMap<string, OnnxTensor>;
  /** Weights and constants, those of nodes and subgraphs included. */
  readonly tensors: readonly OnnxTensor[];
  /** What its maker wrote of it. */
  readonly metadata: ReadonlyMap<string, string>;
  /** The model's fields but for its graph, as bytes: versions of operators, functions. */
  readonly rest: readonly Buffer[];
}

/**
 * Reads an `.onnx` file, without its weights.
 *
 * @throws ProtobufError saying what is wrong if it is not a whole one; Error of node:fs if it cannot be read.
 */
export function readOnnxFile(path: string): OnnxFile {
  const file = new ProtobufFile(path);
  try {
    if (file.size === 0) throw new ProtobufError('it is empty');
    const model = file.message();
    const range = model.all(7).findLast(({ start, end }) => end > start);
    if (range === undefined) throw new ProtobufError('it has no graph');
    const versions = model.all(1).map(({ value }) => numberField(1, value));
    const others = [8, 25].flatMap((number) => model.all(number).map((field) => bytesField(number, file.bytes(field))));
    const metadata = new Map(model.messages(14).map((entry) => [entry.text(1), entry.text(2)]));
    return { path, ...readGraph(file, range), metadata, rest: [...versions, ...others] };
  } catch (error) {
    if (error instanceof ProtobufError && isLfsPointer(file)) {
      throw new ProtobufError('it is a Git LFS pointer and not the file itself, which `git lfs pull` would fetch');
    }
    throw error;
  } finally {
    file.close();
  }
}

function isLfsPointer(file: ProtobufFile): boolean {
  const mark = 'version https://git-lfs';
  return file.size >= mark.length && file.text({ start: 0, end: mark.length }) === mark;
}

function readGraph(file: ProtobufFile, range: ByteRange): Omit<OnnxFile, 'path' | 'metadata' | 'rest'> {
  const graph = file.message(range);
  const tensors = graph.all(5).map((field) => readTensor(file, field));
  const weights = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const nodes = graph.all(1).map((field) => readNode(file, field, tensors));
  const inputs = graph.messages(11).map(readValue);
  return {
    nodes,
    inputs: inputs.filter(({ name }) => !weights.has(name)),
    outputs: graph.messages(12).map(readValue),
    weights,
    tensors,
  };
}

/** Constants and subgraphs are attributes of nodes; their tensors go into `tensors`. */
function readNode(file: ProtobufFile, range: ByteRange, tensors: OnnxTensor[]): OnnxNode {
  const node = file.message(range);
  const attributes = node.messages(5).map((attribute) => {
    const [float] = attribute.all(2);
    const [tensor] = attribute.all(5).map((field) => readTensor(file, field));
    if (tensor !== undefined) tensors.push(tensor);
    for (const field of attribute.all(6)) tensors.push(...readGraph(file, field).tensors);
    const values = { ...(float && { float: file.bytes(float).readFloatLE(0) }), ...(tensor && { tensor }) };
    return [attribute.text(1), values] as const;
  });
  return {
    operator: node.text(4),
    inputs: node.texts(1),
    outputs: node.texts(2),
    attributes: new Map(attributes),
    range,
  };
}

function readTensor(file: ProtobufFile, range: ByteRange): OnnxTensor {
  const tensor = file.message(range);
  const raw = tensor.all(9).at(-1);
  const shape = tensor.numbers(1);
  const entries = tensor.messages(13).map((entry) => [entry.text(1), entry.text(2)] as const);
  const { location = '', offset = '0', length } = Object.fromEntries(entries) as Partial<Record<string, string>>;
  const external = { location, offset: Number(offset), length: length === undefined ? undefined : Number(length) };
  return {
    name: tensor.text(8),
    shape,
    count: shape.reduce((product, side) => product * side, 1),
    dataType: tensor.number(2),
    rawBytes: raw && raw.end - raw.start,
    external: tensor.number(14) === 1 ? external : undefined,
    range,
  };
}

/** ValueInfoProto → TypeProto → its tensor type → TensorShapeProto → Dimension. */
function readValue(value: ProtobufMessage): OnnxValue {
  const shapes = value.messages(2).flatMap((type) => type.messages(1).flatMap((tensor) => tensor.messages(2)));
  const dimensions = shapes.flatMap((shape) => shape.messages(1));
  return { name: value.text(1), shape: dimensions.map((side) => side.all(1)[0]?.value ?? side.texts(2)[0]) };
}
