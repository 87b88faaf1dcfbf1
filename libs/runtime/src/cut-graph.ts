/** Cuts an ONNX graph into parts that run one after the other. Field numbers are those of onnx.proto. */
import { bytesField, bytesHeader, fieldsOf, numberField, type WireField } from './protobuf.ts';

/** Nodes that are next to each other. */
export interface GraphPart {
  /** Values that later parts read. */
  readonly leaving: readonly string[];
  /** @param typeOf ONNX's number of the element type of a value that an earlier part made. */
  readonly toModel: (typeOf: (name: string) => number) => Uint8Array;
}

interface Node {
  readonly bytes: Uint8Array;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly kind: string;
}

interface Graph {
  /** Fields of the model besides the graph. */
  readonly around: readonly Uint8Array[];
  readonly nodes: readonly Node[];
  /** By name, as fields of the graph. */
  readonly weights: ReadonlyMap<string, Uint8Array>;
  readonly inputs: ReadonlyMap<string, Uint8Array>;
  readonly outputs: ReadonlyMap<string, Uint8Array>;
}

const decoder = new TextDecoder();

/**
 * Cuts behind nodes that read what a node of a kind gives, wherever a part has so many bytes of weights at least. (ONNX Runtime
 * 1.30 says of what GroupQueryAttention itself gives that it has no columns, and so cannot hand it out.)
 *
 * @returns undefined where nothing can be cut: weights in other files, graphs within graphs.
 */
export function cutGraph(model: Uint8Array, kind: string, leastBytes: number): GraphPart[] | undefined {
  const graph = readGraph(model);
  if (graph === undefined) return undefined;
  const pieces: Node[][] = [[]];
  let left = graph.nodes.filter((node) => node.kind === kind).length;
  let bytes = 0;
  let awaited: string | undefined;
  for (const node of graph.nodes) {
    pieces.at(-1)!.push(node);
    // Of a table only a few rows are read.
    if (node.kind !== 'Gather')
      bytes += node.inputs.reduce((sum, name) => sum + (graph.weights.get(name)?.length ?? 0), 0);
    if (node.kind === kind) {
      left -= 1;
      // Behind the last of them a part of its own leads to the logits, which are not always wanted.
      if (bytes >= leastBytes || (left === 0 && pieces.length > 1)) awaited = node.outputs[0];
    }
    if (awaited === undefined || !node.inputs.includes(awaited)) continue;
    pieces.push([]);
    bytes = 0;
    awaited = undefined;
  }
  const [first] = graph.outputs.keys();
  const marker = graph.nodes.find(({ inputs, outputs }) => inputs.length === 0 && outputs[0] === first);
  return pieces.map((_, at) => partOf(graph, pieces, at, marker));
}

/** @param marker makes the graph's first output of nothing: each part has it. */
function partOf(graph: Graph, pieces: readonly (readonly Node[])[], at: number, marker: Node | undefined): GraphPart {
  const own = pieces[at]!.filter((node) => node !== marker);
  const made = (nodes: readonly Node[]) =>
    new Set(nodes.flatMap(({ outputs }) => outputs).filter((name) => name !== ''));
  const read = (nodes: readonly Node[]) => new Set(nodes.flatMap(({ inputs }) => inputs));
  const [before, after] = [made(pieces.slice(0, at).flat()), read(pieces.slice(at + 1).flat())];
  const [ownInputs, ownOutputs] = [read(own), made(own)];
  const entering = [...before].filter((name) => ownInputs.has(name));
  const leaving = [...ownOutputs].filter((name) => after.has(name));
  const nodes = marker === undefined ? own : [marker, ...own];
  const outputs = new Set([...(marker?.outputs ?? []), ...ownOutputs]);
  return {
    leaving,
    toModel(typeOf) {
      const contents = [
        ...nodes.map(({ bytes }) => bytes),
        bytesField(2, 'part'),
        ...fieldsAmong(graph.weights, ownInputs),
        ...fieldsAmong(graph.inputs, ownInputs),
        ...entering.map((name) => bytesField(11, valueOf(name, typeOf(name)))),
        ...fieldsAmong(graph.outputs, outputs),
        ...leaving.filter((name) => !graph.outputs.has(name)).map((name) => bytesField(12, valueOf(name))),
      ];
      const bytes = contents.reduce((sum, { length }) => sum + length, 0);
      return Buffer.concat([...graph.around, bytesHeader(7, bytes), ...contents]);
    },
  };
}

function fieldsAmong(fields: ReadonlyMap<string, Uint8Array>, names: ReadonlySet<string>): Uint8Array[] {
  return [...fields].flatMap(([name, field]) => (names.has(name) ? field : []));
}

/** @param type of its elements; that of an output ONNX Runtime finds out. */
function valueOf(name: string, type?: number): Uint8Array {
  const named = bytesField(1, name);
  if (type === undefined) return named;
  return Buffer.concat([named, bytesField(2, bytesField(1, numberField(1, type)))]);
}

function readGraph(model: Uint8Array): Graph | undefined {
  const around: Uint8Array[] = [];
  let content: Uint8Array | undefined;
  for (const field of fieldsOf(model)) {
    if (field.number === 7) content = field.content;
    else around.push(field.whole);
  }
  if (content === undefined) return undefined;
  const nodes: Node[] = [];
  const [weights, inputs, outputs] = [new Map<string, Uint8Array>(), new Map(), new Map()] as const;
  for (const field of fieldsOf(content)) {
    if (field.number === 1) nodes.push(readNode(field));
    else if (field.number === 5) weights.set(textIn(field, 8), field.whole);
    else if (field.number === 11) inputs.set(textIn(field, 1), field.whole);
    else if (field.number === 12) outputs.set(textIn(field, 1), field.whole);
    // Names, notes and shapes are of no use to a part; sparse weights would be.
    else if (field.number === 15) return undefined;
  }
  const isWhole = [...weights.values()].every((weight) => !isElsewhere(weight)) && !nodes.some(hasGraphs);
  return isWhole ? { around, nodes, weights, inputs, outputs } : undefined;
}

function readNode({ whole, content }: WireField): Node {
  const fields = [...fieldsOf(content)];
  const textsOf = (number: number) =>
    fields.filter((field) => field.number === number).map((field) => decoder.decode(field.content));
  return { bytes: whole, inputs: textsOf(1), outputs: textsOf(2), kind: textsOf(4)[0] ?? '' };
}

/** Whether one of its attributes is a graph, which may read anything. */
function hasGraphs({ bytes }: Node): boolean {
  const [node] = fieldsOf(bytes);
  for (const attribute of fieldsOf(node!.content)) {
    if (attribute.number !== 5) continue;
    for (const { number } of fieldsOf(attribute.content)) if (number === 6 || number === 11) return true;
  }
  return false;
}

/** Whether a weight lies in another file. */
function isElsewhere(weight: Uint8Array): boolean {
  const [tensor] = fieldsOf(weight);
  for (const { number, value } of fieldsOf(tensor!.content)) if (number === 14 && value === 1) return true;
  return false;
}

function textIn({ content }: WireField, number: number): string {
  for (const field of fieldsOf(content)) if (field.number === number) return decoder.decode(field.content);
  return '';
}
