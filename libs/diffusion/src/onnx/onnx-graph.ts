/**
 * An ONNX graph by its nodes, to make smaller graphs of. What it does not need to know of nodes and weights it leaves in the
 * file, and copies from there. Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ProtobufField, ProtobufFile, readFully } from './protobuf-file.ts';
import { bytesField, bytesHeader, numberField } from './protobuf-message.ts';
import { readTensor } from './read-onnx-file.ts';

interface Range {
  readonly start: number;
  readonly end: number;
}

/** One node; an input that is left out has the name ''. */
export interface OnnxNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, ProtobufField>;
  readonly range: Range;
}

/** ONNX's number of a type of elements: 1 for float32, 10 for float16. */
export type ElementType = number;

/** An input or output of a graph that is made. */
export interface GraphEnd {
  readonly name: string;
  readonly elementType: ElementType;
}

/** What a graph is made of. */
export interface GraphParts {
  /** In an order that they can run in: nodes of the file, or the bytes of others. */
  readonly nodes: readonly (OnnxNode | Uint8Array)[];
  readonly inputs: readonly GraphEnd[];
  readonly outputs: readonly GraphEnd[];
}

export class OnnxGraph {
  /** In the order of the file, in which each comes after what it reads. */
  readonly nodes: OnnxNode[] = [];
  /** Names of inputs and outputs, those that are weights too left out. */
  readonly inputs: string[] = [];
  readonly outputs: string[] = [];
  readonly #path: string;
  readonly #weights = new Map<string, Range>();
  /** The model's fields but for its graph: versions of operators, functions. */
  readonly #rest: Buffer[] = [];

  /** @throws ProtobufError if the file is no whole graph; Error of node:fs if it cannot be read. */
  constructor(path: string) {
    this.#path = path;
    const file = new ProtobufFile(path);
    try {
      for (const field of file.fields(0, file.size)) {
        if (field.number === 7) this.#readGraph(file, field);
        else if (field.number === 1) this.#rest.push(numberField(1, field.value));
        else if (field.number === 8 || field.number === 25)
          this.#rest.push(bytesField(field.number, file.bytes(field.start, field.end)));
      }
    } finally {
      file.close();
    }
    for (const name of this.#weights.keys()) {
      const at = this.inputs.indexOf(name);
      if (at !== -1) this.inputs.splice(at, 1);
    }
  }

  isWeight(name: string): boolean {
    return this.#weights.has(name);
  }

  /** Shape and type of a weight. */
  describeWeight(name: string): { shape: readonly number[]; elementType: ElementType } {
    return this.#withFile((file) => {
      const { start, end } = this.#weights.get(name)!;
      const { shape, dataType } = readTensor(file, start, end);
      return { shape, elementType: dataType };
    });
  }

  /** The same of the value of a Constant node. */
  describeConstant(node: OnnxNode): { shape: readonly number[]; elementType: ElementType } | undefined {
    return this.#withFile((file) => {
      const value = node.attributes.get('value');
      if (value === undefined) return undefined;
      for (const { number, start, end } of file.fields(value.start, value.end)) {
        if (number !== 5) continue;
        const { shape, dataType } = readTensor(file, start, end);
        return { shape, elementType: dataType };
      }
      return undefined;
    });
  }

  /** A node's attribute that is a float. */
  readFloat({ attributes }: OnnxNode, name: string): number | undefined {
    const attribute = attributes.get(name);
    if (attribute === undefined) return undefined;
    return this.#withFile((file) => {
      for (const { number, start, end } of file.fields(attribute.start, attribute.end)) {
        if (number === 2) return file.bytes(start, end).readFloatLE(0);
      }
      return undefined;
    });
  }

  /** The bytes of an `.onnx` file of these nodes, with the weights they read inside. */
  write({ nodes, inputs, outputs }: GraphParts): Buffer {
    return this.#withFile((file) => {
      const pieces: Piece[] = [];
      const names = new Set<string>();
      for (const node of nodes) {
        if (node instanceof Uint8Array) {
          pieces.push(bytesField(1, node));
          continue;
        }
        pieces.push(...fieldOf(1, node.range));
        for (const name of node.inputs) if (this.#weights.has(name)) names.add(name);
      }
      pieces.push(bytesField(2, 'part'));
      for (const name of names) pieces.push(...this.#weightField(file, name));
      for (const end of inputs) pieces.push(bytesField(11, valueInfo(end)));
      for (const end of outputs) pieces.push(bytesField(12, valueInfo(end)));
      return assemble([...this.#rest, bytesHeader(7, lengthOf(pieces)), ...pieces], file);
    });
  }

  #withFile<Result>(work: (file: ProtobufFile) => Result): Result {
    const file = new ProtobufFile(this.#path);
    try {
      return work(file);
    } finally {
      file.close();
    }
  }

  #readGraph(file: ProtobufFile, graph: Range): void {
    for (const field of file.fields(graph.start, graph.end)) {
      if (field.number === 1) this.nodes.push(readNode(file, field));
      else if (field.number === 5) this.#weights.set(readTensor(file, field.start, field.end).name, field);
      else if (field.number === 11) this.inputs.push(nameOf(file, field));
      else if (field.number === 12) this.outputs.push(nameOf(file, field));
    }
  }

  #weightField(file: ProtobufFile, name: string): Piece[] {
    const range = this.#weights.get(name)!;
    const { shape, dataType, external } = readTensor(file, range.start, range.end);
    if (external === undefined) return fieldOf(5, range);
    // What is loaded from memory has no folder to find other files in.
    const { location, offset, length } = external;
    const shapeFields = shape.map((side) => numberField(1, side));
    const data = bytesField(9, readRange(join(dirname(this.#path), location), offset, length));
    return [bytesField(5, Buffer.concat([...shapeFields, numberField(2, dataType), bytesField(8, name), data]))];
  }
}

/** Bytes, or where in the file they lie. */
type Piece = Uint8Array | Range;

function fieldOf(number: number, range: Range): Piece[] {
  return [bytesHeader(number, range.end - range.start), range];
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((total, piece) => total + sizeOf(piece), 0);
}

function sizeOf(piece: Piece): number {
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}

/** Puts them together where they end up: weights are large, and never there twice. */
function assemble(pieces: readonly Piece[], file: ProtobufFile): Buffer {
  const whole = Buffer.alloc(lengthOf(pieces));
  let at = 0;
  for (const piece of pieces) {
    if (piece instanceof Uint8Array) whole.set(piece, at);
    else file.read(whole.subarray(at, at + sizeOf(piece)), piece.start);
    at += sizeOf(piece);
  }
  return whole;
}

function readNode(file: ProtobufFile, range: ProtobufField): OnnxNode {
  const inputs: string[] = [];
  const outputs: string[] = [];
  const attributes = new Map<string, ProtobufField>();
  let operator = '';
  for (const field of file.fields(range.start, range.end)) {
    if (field.number === 1) inputs.push(file.text(field.start, field.end));
    else if (field.number === 2) outputs.push(file.text(field.start, field.end));
    else if (field.number === 4) operator = file.text(field.start, field.end);
    else if (field.number === 5) attributes.set(nameOf(file, field), field);
  }
  return { operator, inputs, outputs, attributes, range };
}

/** Of an attribute, an input or an output: the first field of each. */
function nameOf(file: ProtobufFile, { start, end }: Range): string {
  for (const field of file.fields(start, end)) if (field.number === 1) return file.text(field.start, field.end);
  return '';
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
