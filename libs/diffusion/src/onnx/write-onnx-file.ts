/** Writes parts of an `.onnx` file as new graphs; nodes and weights are copied as bytes. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ByteSpan, ProtobufFile, readFully } from './protobuf-file.ts';
import { bytesField, bytesHeader, numberField } from '@darkroom/runtime/protobuf';
import type { OnnxFile, OnnxNode, OnnxTensor } from './read-onnx-file.ts';

/** An input or output of the new graph. */
export interface GraphEnd {
  readonly name: string;
  /** ONNX's element type number. */
  readonly elementType: number;
}

export interface GraphParts {
  /** In topological order: nodes of the file, or bytes of new nodes. */
  readonly nodes: readonly (OnnxNode | Uint8Array)[];
  readonly inputs: readonly GraphEnd[];
  readonly outputs: readonly GraphEnd[];
}

/** Bytes, or a range of the file. */
type Chunk = Uint8Array | ByteSpan;

/** Returns the bytes of an `.onnx` file with these nodes and the weights they read. */
export function writeOnnxFile({ path, weights, rest }: OnnxFile, { nodes, inputs, outputs }: GraphParts): Buffer {
  const read = new Set(nodes.flatMap((node) => (node instanceof Uint8Array ? [] : node.inputs)));
  const chunks: Chunk[] = [
    ...nodes.flatMap((node) => (node instanceof Uint8Array ? [bytesField(1, node)] : fieldOf(1, node.range))),
    bytesField(2, 'part'),
    ...[...read].flatMap((name) => weights.get(name) ?? []).flatMap((weight) => weightField(path, weight)),
    ...inputs.map((end) => bytesField(11, valueInfo(end))),
    ...outputs.map((end) => bytesField(12, valueInfo(end))),
  ];
  return assemble([...rest, bytesHeader(7, lengthOf(chunks)), ...chunks], path);
}

function weightField(path: string, { range, name, shape, dataType, external }: OnnxTensor): Chunk[] {
  if (external === undefined) return fieldOf(5, range);
  // A graph loaded from memory has no folder for external data, so the data is copied into it.
  const { location, offset, length } = external;
  const shapeFields = shape.map((side) => numberField(1, side));
  const data = bytesField(9, readRange(join(dirname(path), location), offset, length));
  return [bytesField(5, Buffer.concat([...shapeFields, numberField(2, dataType), bytesField(8, name), data]))];
}

function fieldOf(number: number, range: ByteSpan): Chunk[] {
  return [bytesHeader(number, range.end - range.start), range];
}

function lengthOf(chunks: readonly Chunk[]): number {
  return chunks.reduce((total, piece) => total + sizeOf(piece), 0);
}

function sizeOf(piece: Chunk): number {
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}

/** Assembles the file in one buffer, so that the large weights are in memory only once. */
function assemble(chunks: readonly Chunk[], path: string): Buffer {
  const buffer = Buffer.alloc(lengthOf(chunks));
  const file = new ProtobufFile(path);
  try {
    let at = 0;
    for (const piece of chunks) {
      if (piece instanceof Uint8Array) buffer.set(piece, at);
      else file.read(buffer.subarray(at, at + sizeOf(piece)), piece.start);
      at += sizeOf(piece);
    }
  } finally {
    file.close();
  }
  return buffer;
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
