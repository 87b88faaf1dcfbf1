/**
 * Splits a VAE decoder at its group norms. Between two norms everything is local (small convolutions, elementwise
 * functions) and can be computed in tiles; the mean and variance of the complete image become inputs of the norms.
 * Parts at latent resolution are small and not tiled, except attention, which runs on some queries at a time.
 */
import { itemAt, valueOfKey } from '@darkroom/core';
import { type AttentionNodes, findAttention } from './find-attention.ts';
import { bytesField } from '@darkroom/runtime/protobuf';
import { type OnnxFile, type OnnxNode, readOnnxFile } from './read-onnx-file.ts';
import { type GraphEnd, writeOnnxFile } from './write-onnx-file.ts';

/** A group norm that takes its mean and variance as inputs. */
export interface MeasuredNorm {
  /** The tensor that is normalized. */
  readonly of: string;
  readonly groups: number;
  readonly epsilon: number;
  /** Names of the inputs [1, groups, 1]: the mean, and one over the standard deviation. */
  readonly mean: string;
  readonly inverse: string;
}

/** A part of a decoder; runs after the parts before it. */
export interface DecoderPart {
  /** Tensors of earlier parts; for the first part the decoder's input. */
  readonly inputs: readonly string[];
  /** Tensors that later parts read. */
  readonly outputs: readonly string[];
  /**
   * Tensors that later parts normalize. Not all are outputs: upsampled tensors are large, so they are computed twice
   * instead.
   */
  readonly measured: readonly string[];
  /** Empty if the part must run on complete inputs. */
  readonly norms: readonly MeasuredNorm[];
  /**
   * `whole`: runs once. `rows`: runs on some rows of pixels at a time. `queries`: runs on some attention queries at a
   * time.
   */
  readonly kind: 'whole' | 'rows' | 'queries';
  /** Inputs that are tiled; the other inputs are passed in full. */
  readonly cut: readonly string[];
  /** Maximum number of rows beyond a tile's edge that the tile depends on, in rows of the smallest input. */
  readonly halo: number;
  /** Returns the bytes of its `.onnx` file. */
  write(): Uint8Array;
}

export class UnsplittableError extends Error {}

const float32 = 1;
const upsampling: ReadonlySet<string> = new Set(['Resize', 'Upsample']);
/** Metadata of a tensor that depends on the decoder's input. */
interface TensorInfo {
  /** Index of the part that computes it. */
  readonly part: number;
  /** True if it has rows and columns of pixels; false for shapes. */
  readonly isSpatial: boolean;
  readonly producer: OnnxNode | undefined;
}

/**
 * Splits a decoder into parts.
 *
 * @throws UncuttableError if it is not built like exports of diffusers' AutoencoderKL; ProtobufError if it is not
 * complete.
 */
export function splitDecoder(path: string): readonly DecoderPart[] {
  const graph = readOnnxFile(path);
  const [[input, ...inputs], [output, ...outputs]] = [graph.inputs, graph.outputs];
  if (input === undefined || output === undefined || inputs.length + outputs.length > 0)
    throw new UnsplittableError('it has several inputs or outputs');
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  const attention = findAttention(graph, producers);
  const { tensors, firstCut } = numberParts(graph, producers, attention);
  const last = tensors.get(output.name)?.part ?? 0;
  if (last < firstCut) throw new UnsplittableError('it has no group norms at high resolution');
  const elementType = typeOfNorms(
    graph,
    producers,
    ({ outputs }) => valueOfKey(tensors, itemAt(outputs, 0)).part >= firstCut,
  );

  const parts: DecoderPart[] = [];
  /** Tensors that later parts read, and those that they normalize. */
  const read = new Set([output.name]);
  const normalized = new Set<string>();
  for (let part = last; part >= 0; part--) {
    const isHere = (name: string): boolean => valueOfKey(tensors, name).part === part;
    const ends = { outputs: [...read].filter(isHere), measured: [...normalized].filter(isHere) };
    const found = describePart({ part, ...ends, firstCut, attention, graph, producers, tensors, elementType });
    for (const name of ends.outputs) read.delete(name);
    for (const name of found.inputs) if (name !== input.name) read.add(name);
    for (const { of } of found.norms) normalized.add(of);
    parts.unshift(found);
  }
  return parts;
}

/**
 * Assigns each tensor that depends on the input to a part. At high resolution each norm starts a new part; at low
 * resolution each attention does, and so do the nodes after it.
 */
function numberParts(
  graph: OnnxFile,
  producers: ReadonlyMap<string, OnnxNode>,
  attention: readonly AttentionNodes[],
): { tensors: Map<string, TensorInfo>; firstCut: number } {
  const tensors = new Map<string, TensorInfo>([
    [itemAt(graph.inputs, 0).name, { part: 0, isSpatial: true, producer: undefined }],
  ]);
  const head = findHead(graph, producers);
  // Attention lies between the part before it and the part after it.
  const firstCut = 1 + 2 * attention.filter(({ nodes }) => [...nodes].every((node) => head.has(node))).length;
  for (const node of graph.nodes) {
    if ([...node.attributes.keys()].some((name) => name.endsWith('_branch') || name === 'body'))
      throw new UnsplittableError(`it has a node ${node.operator}`);
    const read = node.inputs.map((name) => tensors.get(name)).filter((found) => found !== undefined);
    if (read.length === 0) continue;
    const isSpatial = node.operator !== 'Shape' && read.some((found) => found.isSpatial);
    let part = Math.max(...read.map((found) => found.part));
    if (attention.some(({ nodes, queries }) => nodes.has(node) && node.inputs[0] === queries)) part += 1;
    if (attention.some(({ output }) => node.inputs.includes(output) && valueOfKey(tensors, output).part === part))
      part += 1;
    if (!head.has(node)) {
      part = Math.max(part, firstCut);
      // A norm is preceded by a Reshape that groups the channels; that node starts the part.
      if (node.operator === 'Reshape' && graph.nodes.some((next) => isNormOf(next, node))) part += 1;
    }
    for (const name of node.outputs) tensors.set(name, { part, isSpatial, producer: node });
  }
  return { tensors, firstCut };
}

function isNormOf({ operator, inputs }: OnnxNode, node: OnnxNode): boolean {
  return operator === 'InstanceNormalization' && inputs[0] === node.outputs[0];
}

/** Returns the nodes up to the first upsampling. */
function findHead(graph: OnnxFile, producers: ReadonlyMap<string, OnnxNode>): Set<OnnxNode> {
  const head = new Set<OnnxNode>();
  const first = graph.nodes.find(({ operator }) => upsampling.has(operator));
  if (first === undefined) throw new UnsplittableError('it has no Resize or Upsample node');
  const names = [itemAt(first.inputs, 0)];
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const node = producers.get(name);
    if (node === undefined || head.has(node)) continue;
    head.add(node);
    names.push(...node.inputs);
  }
  return head;
}

interface CollectOptions {
  part: number;
  /** The tensors to compute. */
  targets: readonly string[];
  graph: OnnxFile;
  producers: ReadonlyMap<string, OnnxNode>;
  tensors: ReadonlyMap<string, TensorInfo>;
}

/** Returns the nodes that compute tensors in a part, and the tensors of earlier parts that they read. */
function collect({ part, targets, graph, producers, tensors }: CollectOptions) {
  const nodes = new Set<OnnxNode>();
  const reads = new Set<string>();
  const names = [...targets];
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const found = tensors.get(name);
    // Shapes are computed again in each part, from the tile.
    const isEarlier = found !== undefined && (found.producer === undefined || found.part < part);
    const isRead = isEarlier && found.isSpatial && (part === 0 || !isUpsampled(found.producer, producers));
    if (isRead) reads.add(name);
    const node = producers.get(name);
    if (isRead || node === undefined || nodes.has(node)) continue;
    nodes.add(node);
    names.push(...node.inputs.filter((input) => input !== '' && !graph.weights.has(input)));
  }
  return { nodes: graph.nodes.filter((node) => nodes.has(node)), reads: [...reads] };
}

/** Returns true if the node upsamples, or is the convolution after an upsampling. */
function isUpsampled(node: OnnxNode | undefined, producers: ReadonlyMap<string, OnnxNode>): boolean {
  if (node === undefined) return false;
  if (upsampling.has(node.operator)) return true;
  return node.operator === 'Conv' && upsampling.has(producers.get(node.inputs[0] ?? '')?.operator ?? '');
}

interface DescribePartOptions extends Omit<CollectOptions, 'targets'> {
  outputs: readonly string[];
  measured: readonly string[];
  /** Index of the first part that is tiled by rows. */
  firstCut: number;
  attention: readonly AttentionNodes[];
  elementType: number;
}

function describePart(options: DescribePartOptions): DecoderPart {
  const { part, outputs, measured, firstCut, attention, graph, producers, elementType } = options;
  const targets = [...new Set([...outputs, ...measured])];
  const { nodes, reads } = collect({ ...options, targets });
  const norms = new Map<OnnxNode, MeasuredNorm>();
  for (const node of part < firstCut ? [] : nodes) {
    if (node.operator !== 'InstanceNormalization') continue;
    const [input = '', scale = ''] = node.inputs;
    const grouping = producers.get(input);
    if (grouping?.operator !== 'Reshape') throw new UnsplittableError('it has a norm that is not a group norm');
    const groups = findConstant(graph, producers, scale)?.shape[0];
    if (groups === undefined) throw new UnsplittableError('it has a norm with an unknown number of groups');
    const names = { mean: `mean_${norms.size}`, inverse: `inverse_${norms.size}` };
    norms.set(node, {
      of: itemAt(grouping.inputs, 0),
      groups,
      epsilon: node.attributes.get('epsilon')?.float ?? 1e-5,
      ...names,
    });
  }
  const ends = (names: readonly string[]): GraphEnd[] => names.map((name) => ({ name, elementType }));
  return {
    inputs: reads,
    outputs,
    measured,
    norms: [...norms.values()],
    ...tilingOf(part >= firstCut, { nodes, reads, attention }),
    halo: nodes.filter(({ operator }) => operator === 'Conv').length,
    write: () =>
      writeOnnxFile(graph, {
        nodes: nodes.flatMap<OnnxNode | Uint8Array>((node) => {
          const norm = norms.get(node);
          return norm === undefined ? [node] : normalize(node, norm);
        }),
        inputs: ends([...reads, ...[...norms.values()].flatMap(({ mean, inverse }) => [mean, inverse])]),
        outputs: ends(targets),
      }),
  };
}

/** Returns how the part is tiled. An attention part is tiled by its queries. */
function tilingOf(
  isLocal: boolean,
  {
    nodes,
    reads,
    attention,
  }: { nodes: readonly OnnxNode[]; reads: readonly string[]; attention: readonly AttentionNodes[] },
): Pick<DecoderPart, 'kind' | 'cut'> {
  if (isLocal) return { kind: 'rows', cut: reads };
  const found = attention.find((one) => nodes.some((node) => one.nodes.has(node)));
  return found === undefined ? { kind: 'whole', cut: [] } : { kind: 'queries', cut: [found.queries] };
}

/** Returns the nodes (x − mean) · inverse. The norm's scale and shift follow after the groups are undone. */
function normalize({ inputs, outputs }: OnnxNode, { mean, inverse }: MeasuredNorm): Uint8Array[] {
  const centered = `${mean}_centered`;
  return [
    nodeBytes('Sub', [itemAt(inputs, 0), mean], centered),
    nodeBytes('Mul', [centered, inverse], itemAt(outputs, 0)),
  ];
}

function nodeBytes(operator: string, inputs: readonly string[], output: string): Uint8Array {
  return Buffer.concat([...inputs.map((name) => bytesField(1, name)), bytesField(2, output), bytesField(4, operator)]);
}

/** Returns the element type of the norms' scales, which all activations have. */
function typeOfNorms(
  graph: OnnxFile,
  producers: ReadonlyMap<string, OnnxNode>,
  isCut: (norm: OnnxNode) => boolean,
): number {
  const norm = graph.nodes.find((node) => node.operator === 'InstanceNormalization' && isCut(node));
  const scale = norm?.inputs[1];
  return (scale === undefined ? undefined : findConstant(graph, producers, scale)?.dataType) ?? float32;
}

/** Finds a weight, or the value of a Constant node. */
function findConstant({ weights }: OnnxFile, producers: ReadonlyMap<string, OnnxNode>, name: string) {
  const node = producers.get(name);
  return weights.get(name) ?? (node?.operator === 'Constant' ? node.attributes.get('value')?.tensor : undefined);
}
