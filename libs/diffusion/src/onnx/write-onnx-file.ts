/** Makes smaller graphs of an `.onnx` file: nodes and weights are copied from there, whatever they hold. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ByteRange, ProtobufFile, readFully } from './protobuf-file.ts';
import { bytesField, bytesHeader, numberField } from '@darkroom/runtime/protobuf';
import type { OnnxFile, OnnxNode, OnnxTensor } from './read-onnx-file.ts';

/** An input or output of a graph that is made. */
export interface GraphEnd {
  readonly name: string;
  /** ONNX's number of it. */
  readonly elementType: number;
}

export interface GraphParts {
  /** In an order that they can run in: nodes of the file, or the bytes of others. */
  readonly nodes: readonly (OnnxNode | Uint8Array)[];
  readonly inputs: readonly GraphEnd[];
  readonly outputs: readonly GraphEnd[];
}

/** Bytes, or where in the file they lie. */
type Piece = Uint8Array | ByteRange;

/** The bytes of an `.onnx` file of these nodes, with the weights they read inside. */
export function writeOnnxFile({ path, weights, rest }: OnnxFile, { nodes, inputs, outputs }: GraphParts): Buffer {
  const read = new Set(nodes.flatMap((node) => (node instanceof Uint8Array ? [] : node.inputs)));
  const pieces: Piece[] = [
    ...nodes.flatMap((node) => (node instanceof Uint8Array ? [bytesField(1, node)] : fieldOf(1, node.range))),
    bytesField(2, 'part'),
    ...[...read].flatMap((name) => (weights.has(name) ? weightField(path, weights.get(name)!) : [])),
    ...inputs.map((end) => bytesField(11, valueInfo(end))),
    ...outputs.map((end) => bytesField(12, valueInfo(end))),
  ];
  return assemble([...rest, bytesHeader(7, lengthOf(pieces)), ...pieces], path);
}

function weightField(path: string, { range, name, shape, dataType, external }: OnnxTensor): Piece[] {
  if (external === undefined) return fieldOf(5, range);
  // What is loaded from memory has no folder to find other files in.
  const { location, offset, length } = external;
  const shapeFields = shape.map((side) => numberField(1, side));
  const data = bytesField(9, readRange(join(dirname(path), location), offset, length));
  return [bytesField(5, Buffer.concat([...shapeFields, numberField(2, dataType), bytesField(8, name), data]))];
}

function fieldOf(number: number, range: ByteRange): Piece[] {
  return [bytesHeader(number, range.end - range.start), range];
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((total, piece) => total + sizeOf(piece), 0);
}

function sizeOf(piece: Piece): number {
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}

/** Puts them together where they end up: weights are large, and never there twice. */
function assemble(pieces: readonly Piece[], path: string): Buffer {
  const whole = Buffer.alloc(lengthOf(pieces));
  const file = new ProtobufFile(path);
  try {
    let at = 0;
    for (const piece of pieces) {
      if (piece instanceof Uint8Array) whole.set(piece, at);
      else file.read(whole.subarray(at, at + sizeOf(piece)), piece.start);
      at += sizeOf(piece);
    }
  } finally {
    file.close();
  }
  return whole;
}

/** ValueInfoProto → TypeProto → its tensor type, of any shape. */
function valueInfo({ name, elementType }: GraphEnd): Buffer {
  return Buffer.concat([bytesField(1, name), bytesField(2, bytesField(1, numberField(1, elementType)))]);
}

function readRange(path: string, offset: number, length: number | undefined): Buffer {
  const file = openSync(path, 'r');
  try {
    const data = Buffer.alloc(length ?? fstatSync(file).size - offset);
    readFully(file, data, offset);
    return data;
  } finally {
    closeSync(file);
  }
}
