/** Cuts an ONNX graph into parts that run in sequence. Field numbers are those of onnx.proto. */
import { bytesField, bytesHeader, fieldsOf, numberField, type WireField } from './protobuf.ts';

/** Consecutive nodes of a graph. */
export interface GraphPart {
  /** Names of the values that later parts read. */
  readonly passedNames: readonly string[];
  /** @param typeOf ONNX's element type number of a value computed by an earlier part. */
  readonly toModel: (typeOf: (name: string) => number) => Uint8Array;
}

interface Node {
  readonly bytes: Uint8Array;
  /** Fields of the node. */
  readonly content: Uint8Array;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly kind: string;
}

interface Graph {
  /** Fields of the model other than the graph. */
  readonly modelFields: readonly Uint8Array[];
  readonly nodes: readonly Node[];
  /** Fields of the graph, by name. */
  readonly weights: ReadonlyMap<string, Uint8Array>;
  readonly inputs: ReadonlyMap<string, Uint8Array>;
  readonly outputs: ReadonlyMap<string, Uint8Array>;
}

const decoder = new TextDecoder();

/**
 * Cuts after nodes that consume the output of a `kind` node, once a part has at least `minBytes` of weights. (ONNX
 * Runtime 1.30 infers no columns for GroupQueryAttention's own output, so a part cannot return it.)
 *
 * @returns undefined if the graph cannot be cut: external weights, or graphs nested in nodes.
 */
export function cutGraph(model: Uint8Array, kind: string, minBytes: number): GraphPart[] | undefined {
  const graph = readGraph(model);
  if (graph === undefined) return undefined;
  let slice: Node[] = [];
  const slices = [slice];
  let left = graph.nodes.filter((node) => node.kind === kind).length;
  let bytes = 0;
  let cutOutput: string | undefined;
  for (const node of graph.nodes) {
    slice.push(node);
    // A lookup table does not count: a call reads only a few of its rows.
    if (node.kind !== 'Gather')
      bytes += node.inputs.reduce((sum, name) => sum + (graph.weights.get(name)?.length ?? 0), 0);
    if (node.kind === kind) {
      left -= 1;
      // Cut after the last `kind` node too: the part behind it only computes logits, which not every call needs.
      if (bytes >= minBytes || (left === 0 && slices.length > 1)) cutOutput = node.outputs[0];
    }
    if (cutOutput === undefined || !node.inputs.includes(cutOutput)) continue;
    slice = [];
    slices.push(slice);
    bytes = 0;
    cutOutput = undefined;
  }
  const [first] = graph.outputs.keys();
  const marker = graph.nodes.find(({ inputs, outputs }) => inputs.length === 0 && outputs[0] === first);
  return slices.map((nodes, at) =>
    partOf(graph, { before: slices.slice(0, at).flat(), nodes, after: slices.slice(at + 1).flat() }, marker),
  );
}

/** The nodes of a part, and those of the parts before and after it. */
interface Slice {
  readonly before: readonly Node[];
  readonly nodes: readonly Node[];
  readonly after: readonly Node[];
}

/** @param marker the node without inputs that produces the graph's first output: each part gets a copy. */
function partOf(graph: Graph, slice: Slice, marker: Node | undefined): GraphPart {
  const own = slice.nodes.filter((node) => node !== marker);
  const outputsOf = (nodes: readonly Node[]) =>
    new Set(nodes.flatMap(({ outputs }) => outputs).filter((name) => name !== ''));
  const inputsOf = (nodes: readonly Node[]) => new Set(nodes.flatMap(({ inputs }) => inputs));
  const [before, after] = [outputsOf(slice.before), inputsOf(slice.after)];
  const [ownInputs, ownOutputs] = [inputsOf(own), outputsOf(own)];
  const entering = [...before].filter((name) => ownInputs.has(name));
  const passedNames = [...ownOutputs].filter((name) => after.has(name));
  const nodes = marker === undefined ? own : [marker, ...own];
  const outputs = new Set([...(marker?.outputs ?? []), ...ownOutputs]);
  return {
    passedNames,
    toModel(typeOf) {
      const contents = [
        ...nodes.map(({ bytes }) => bytes),
        bytesField(2, 'part'),
        ...fieldsAmong(graph.weights, ownInputs),
        ...fieldsAmong(graph.inputs, ownInputs),
        ...entering.map((name) => bytesField(11, valueOf(name, typeOf(name)))),
        ...fieldsAmong(graph.outputs, outputs),
        ...passedNames.filter((name) => !graph.outputs.has(name)).map((name) => bytesField(12, valueOf(name))),
      ];
      const bytes = contents.reduce((sum, { length }) => sum + length, 0);
      return Buffer.concat([...graph.modelFields, bytesHeader(7, bytes), ...contents]);
    },
  };
}

function fieldsAmong(fields: ReadonlyMap<string, Uint8Array>, names: ReadonlySet<string>): Uint8Array[] {
  return [...fields].flatMap(([name, field]) => (names.has(name) ? field : []));
}

/** @param type element type; ONNX Runtime infers that of an output. */
function valueOf(name: string, type?: number): Uint8Array {
  const named = bytesField(1, name);
  if (type === undefined) return named;
  return Buffer.concat([named, bytesField(2, bytesField(1, numberField(1, type)))]);
}

function readGraph(model: Uint8Array): Graph | undefined {
  const modelFields: Uint8Array[] = [];
  let content: Uint8Array | undefined;
  for (const field of fieldsOf(model)) {
    if (field.number === 7) content = field.content;
    else modelFields.push(field.bytes);
  }
  if (content === undefined) return undefined;
  const nodes: Node[] = [];
  const [weights, inputs, outputs] = [new Map<string, Uint8Array>(), new Map(), new Map()] as const;
  for (const field of fieldsOf(content)) {
    if (field.number === 1) nodes.push(readNode(field));
    else if (field.number === 5) weights.set(textIn(field, 8), field.bytes);
    else if (field.number === 11) inputs.set(textIn(field, 1), field.bytes);
    else if (field.number === 12) outputs.set(textIn(field, 1), field.bytes);
    // A part needs no names, docs or shapes. It would need sparse weights, which are not supported.
    else if (field.number === 15) return undefined;
  }
  const isSupported = [...weights.values()].every((weight) => !isExternal(weight)) && !nodes.some(hasGraphs);
  return isSupported ? { modelFields, nodes, weights, inputs, outputs } : undefined;
}

function readNode({ bytes, content }: WireField): Node {
  const fields = [...fieldsOf(content)];
  const textsOf = (number: number) =>
    fields.filter((field) => field.number === number).map((field) => decoder.decode(field.content));
  return { bytes, content, inputs: textsOf(1), outputs: textsOf(2), kind: textsOf(4)[0] ?? '' };
}

/** Returns true if an attribute is a graph, which may read any value. */
function hasGraphs({ content }: Node): boolean {
  for (const attribute of fieldsOf(content)) {
    if (attribute.number !== 5) continue;
    for (const { number } of fieldsOf(attribute.content)) if (number === 6 || number === 11) return true;
  }
  return false;
}

/** Returns true if the weight's data is in another file. */
function isExternal(weight: Uint8Array): boolean {
  for (const { content } of fieldsOf(weight))
    for (const { number, value } of fieldsOf(content)) if (number === 14 && value === 1) return true;
  return false;
}

function textIn({ content }: WireField, number: number): string {
  for (const field of fieldsOf(content)) if (field.number === number) return decoder.decode(field.content);
  return '';
}
