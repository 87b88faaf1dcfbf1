/**
 * Reads an `.onnx` file: inputs, outputs, nodes and everything about its weights but the values. Field numbers are from
 * https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
 */
import { bytesField, numberField } from '@darkroom/runtime/protobuf';
import { type ByteSpan, ProtobufError, ProtobufFile, type ProtobufMessage } from './protobuf-file.ts';

export interface OnnxValue {
  readonly name: string;
  /** Dynamic dimensions are names or undefined. */
  readonly shape: readonly (number | string | undefined)[];
}

/** A weight or another constant. */
export interface OnnxTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Number of elements. */
  readonly count: number;
  /** ONNX's element type number: 1 for float32, 10 for float16. */
  readonly dataType: number;
  /** Its bytes in the file; undefined if they are external or stored as repeated numbers. */
  readonly rawBytes: number | undefined;
  /** Location of its external data; undefined if the data is in this file. */
  readonly external: ExternalData | undefined;
  /** Range of its TensorProto in the file. */
  readonly range: ByteSpan;
}

export interface ExternalData {
  /** The path in the graph, relative to its folder. */
  readonly location: string;
  readonly offset: number;
  /** undefined: to the end of that file. */
  readonly length: number | undefined;
}

/** One node; an omitted input has the name ''. */
export interface OnnxNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Attributes with a float or a tensor. */
  readonly attributes: ReadonlyMap<string, { readonly float?: number; readonly tensor?: OnnxTensor }>;
  readonly range: ByteSpan;
}

export interface OnnxFile {
  readonly path: string;
  /** In the order of the file, which is topological. */
  readonly nodes: readonly OnnxNode[];
  /** Without inputs that are also weights. */
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly weights: ReadonlyMap<string, OnnxTensor>;
  /** Weights and constants, including those in nodes and subgraphs. */
  readonly tensors: readonly OnnxTensor[];
  /** Free-form metadata of the file's author. */
  readonly metadata: ReadonlyMap<string, string>;
  /** The model's other fields as bytes: operator versions, functions. */
  readonly rest: readonly Buffer[];
}

/**
 * Reads an `.onnx` file, without its weights.
 *
 * @throws ProtobufError with the problem if the file is not complete; an Error of node:fs if it cannot be read.
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
      throw new ProtobufError('it is a Git LFS pointer and not the file itself, run `git lfs pull` to fetch it');
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

function readGraph(file: ProtobufFile, range: ByteSpan): Omit<OnnxFile, 'path' | 'metadata' | 'rest'> {
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

/** Reads a node. Adds the tensors of its attributes (constants and subgraphs) to `tensors`. */
function readNode(file: ProtobufFile, range: ByteSpan, tensors: OnnxTensor[]): OnnxNode {
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

function readTensor(file: ProtobufFile, range: ByteSpan): OnnxTensor {
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
