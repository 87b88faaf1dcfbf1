/**
 * What an `.onnx` file says of itself: inputs, outputs, and of its weights everything but the numbers. Field numbers are
 * those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
 */
import { ProtobufError, ProtobufFile } from './protobuf-file.ts';

/** An input or output. */
export interface OnnxValue {
  readonly name: string;
  /** A name, or undefined, stands for a dimension that varies. */
  readonly shape: readonly (number | string | undefined)[];
}

/** A weight or another constant. */
export interface OnnxTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** ONNX's number of the element type. */
  readonly dataType: number;
  /** Bytes of it inside the file; undefined if they lie elsewhere or are written as numbers. */
  readonly rawBytes: number | undefined;
  /** Where its bytes lie outside; undefined if they are inside. */
  readonly external: ExternalData | undefined;
}

export interface ExternalData {
  /** As the file says it: relative to its folder. */
  readonly location: string;
  readonly offset: number;
  /** undefined: to the end of that file. */
  readonly length: number | undefined;
}

export interface OnnxFile {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Weights and constants, those of nodes and subgraphs included. */
  readonly tensors: readonly OnnxTensor[];
}

type Collected = { [Part in keyof OnnxFile]: OnnxFile[Part][number][] };

/**
 * Reads an `.onnx` file, without its weights.
 *
 * @throws ProtobufError saying what is wrong if it is not a whole one; Error of node:fs if it cannot be read.
 */
export function readOnnxFile(path: string): OnnxFile {
  const file = new ProtobufFile(path);
  try {
    if (file.size === 0) throw new ProtobufError('it is empty');
    let found: Collected | undefined;
    for (const { number, start, end } of file.fields(0, file.size)) {
      if (number !== 7 || end === start) continue;
      found = { inputs: [], outputs: [], tensors: [] };
      readGraph(file, start, end, found);
    }
    if (found === undefined) throw new ProtobufError('it has no graph');
    return found;
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
  return file.size >= mark.length && file.text(0, mark.length) === mark;
}

function readGraph(file: ProtobufFile, start: number, end: number, into: Collected): void {
  for (const field of file.fields(start, end)) {
    if (field.number === 1) readNode(file, field.start, field.end, into);
    else if (field.number === 5) into.tensors.push(readTensor(file, field.start, field.end));
    else if (field.number === 11) into.inputs.push(readValue(file, field.start, field.end));
    else if (field.number === 12) into.outputs.push(readValue(file, field.start, field.end));
  }
}

/** Constants and subgraphs are attributes of nodes. */
function readNode(file: ProtobufFile, start: number, end: number, { tensors }: Collected): void {
  for (const attribute of file.fields(start, end)) {
    if (attribute.number !== 5) continue;
    for (const field of file.fields(attribute.start, attribute.end)) {
      if (field.number === 5) tensors.push(readTensor(file, field.start, field.end));
      if (field.number === 6) readGraph(file, field.start, field.end, { inputs: [], outputs: [], tensors });
    }
  }
}

export function readTensor(file: ProtobufFile, start: number, end: number): OnnxTensor {
  const shape: number[] = [];
  const entries: Record<string, string> = {};
  let name = '';
  let dataType = 0;
  let rawBytes: number | undefined;
  let isExternal = false;
  for (const field of file.fields(start, end)) {
    if (field.number === 1) shape.push(...numbersOf(file, field));
    else if (field.number === 2) dataType = field.value;
    else if (field.number === 8) name = file.text(field.start, field.end);
    else if (field.number === 9) rawBytes = field.end - field.start;
    else if (field.number === 13) Object.assign(entries, readEntry(file, field.start, field.end));
    else if (field.number === 14) isExternal = field.value === 1;
  }
  const { location = '', offset = '0', length } = entries;
  const external = { location, offset: Number(offset), length: length === undefined ? undefined : Number(length) };
  return { name, shape, dataType, rawBytes, external: isExternal ? external : undefined };
}

/** Repeated numbers may come packed or one by one. */
function numbersOf(file: ProtobufFile, field: { value: number; start: number; end: number }): number[] {
  return field.end > field.start ? file.varints(field.start, field.end) : [field.value];
}

function readEntry(file: ProtobufFile, start: number, end: number): Record<string, string> {
  let key = '';
  let value = '';
  for (const field of file.fields(start, end)) {
    if (field.number === 1) key = file.text(field.start, field.end);
    if (field.number === 2) value = file.text(field.start, field.end);
  }
  return { [key]: value };
}

/** ValueInfoProto → TypeProto → its tensor type → TensorShapeProto → Dimension. */
function readValue(file: ProtobufFile, start: number, end: number): OnnxValue {
  let name = '';
  const shape: (number | string | undefined)[] = [];
  for (const field of file.fields(start, end)) {
    if (field.number === 1) name = file.text(field.start, field.end);
    if (field.number !== 2) continue;
    for (const tensorType of nested(file, field, 1)) {
      for (const shapeField of nested(file, tensorType, 2)) {
        for (const dimension of nested(file, shapeField, 1)) shape.push(readDimension(file, dimension));
      }
    }
  }
  return { name, shape };
}

function* nested(file: ProtobufFile, { start, end }: { start: number; end: number }, number: number) {
  for (const field of file.fields(start, end)) if (field.number === number) yield field;
}

function readDimension(file: ProtobufFile, { start, end }: { start: number; end: number }) {
  for (const field of file.fields(start, end)) {
    if (field.number === 1) return field.value;
    if (field.number === 2) return file.text(field.start, field.end);
  }
  return undefined;
}
