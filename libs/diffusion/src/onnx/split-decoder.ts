/**
 * Cuts a VAE's decoder at its group norms. Between two of them everything is local, convolutions of few pixels and functions
 * of single ones, so that it can be computed piece by piece; the norms themselves need the mean and the variance of the
 * whole picture, and take them here as inputs. What is at the resolution of the latents is small and is not cut, but for
 * its attention: scores of all pixels by all pixels, which can be computed for some of them at a time.
 */
import { type AttentionNodes, findAttention } from './find-attention.ts';
import { bytesField } from '@darkroom/runtime/protobuf';
import { type OnnxFile, type OnnxNode, readOnnxFile } from './read-onnx-file.ts';
import { type GraphEnd, writeOnnxFile } from './write-onnx-file.ts';

/** A group norm whose mean and variance a piece is told. */
export interface GivenNorm {
  /** The tensor that is normalized. */
  readonly of: string;
  readonly groups: number;
  readonly epsilon: number;
  /** Names of the inputs [1, groups, 1]: the mean, and one over the standard deviation. */
  readonly mean: string;
  readonly inverse: string;
}

/** A part of a decoder, to run after those before it. */
export interface DecoderPart {
  /** Tensors of earlier parts; of the first part the decoder's input. */
  readonly inputs: readonly string[];
  /** Tensors that later parts read. */
  readonly outputs: readonly string[];
  /** Tensors that later parts normalize. Not all are outputs: what is upsampled is large, and computed twice instead. */
  readonly measured: readonly string[];
  /** Empty where the part has to be run on the whole of its inputs. */
  readonly norms: readonly GivenNorm[];
  /** Whether it is run in one go, on some rows of pixels at a time, or on the queries of some. */
  readonly kind: 'whole' | 'rows' | 'queries';
  /** Those of its inputs that pieces are cut from; it gets the others whole. */
  readonly cut: readonly string[];
  /** So many rows at a piece's edge depend on rows beyond it, at most; rows of the smallest of its inputs. */
  readonly halo: number;
  /** The bytes of its `.onnx` file. */
  write(): Uint8Array;
}

export class UncuttableError extends Error {}

const float32 = 1;
const upsampling: ReadonlySet<string> = new Set(['Resize', 'Upsample']);
/** What is known of a tensor that depends on the decoder's input. */
interface Found {
  /** Number of the part that it can be computed in. */
  readonly part: number;
  /** Whether it has rows and columns of pixels; false for shapes. */
  readonly isSpatial: boolean;
  readonly producer: OnnxNode | undefined;
}

/**
 * Cuts a decoder.
 *
 * @throws UncuttableError if it is not built as exports of diffusers' AutoencoderKL are; ProtobufError if it is not whole.
 */
export function splitDecoder(path: string): readonly DecoderPart[] {
  const graph = readOnnxFile(path);
  const inputs = graph.inputs.map(({ name }) => name);
  const outputs = graph.outputs.map(({ name }) => name);
  if (inputs.length !== 1 || outputs.length !== 1) throw new UncuttableError('it has several inputs or outputs');
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  const attention = findAttention(graph, producers);
  const { tensors, firstCut } = numberParts(graph, producers, attention);
  const last = tensors.get(outputs[0]!)?.part ?? 0;
  if (last < firstCut) throw new UncuttableError('it has no group norms at high resolution');
  const elementType = typeOfNorms(graph, producers, ({ outputs: [name] }) => tensors.get(name!)!.part >= firstCut);

  const parts: DecoderPart[] = [];
  /** Tensors that later parts read, and those that they normalize. */
  const read = new Set([outputs[0]!]);
  const normalized = new Set<string>();
  for (let part = last; part >= 0; part--) {
    const isHere = (name: string): boolean => tensors.get(name)!.part === part;
    const ends = { outputs: [...read].filter(isHere), measured: [...normalized].filter(isHere) };
    const found = describePart({ part, ...ends, firstCut, attention, graph, producers, tensors, elementType });
    for (const name of ends.outputs) read.delete(name);
    for (const name of found.inputs) if (name !== inputs[0]) read.add(name);
    for (const { of } of found.norms) normalized.add(of);
    parts.unshift(found);
  }
  return parts;
}

/**
 * Of each tensor that depends on the input, in which part it is computed: a norm begins a new one at high resolution, and
 * at low resolution an attention and what comes after it.
 */
function numberParts(
  graph: OnnxFile,
  producers: ReadonlyMap<string, OnnxNode>,
  attention: readonly AttentionNodes[],
): { tensors: Map<string, Found>; firstCut: number } {
  const tensors = new Map<string, Found>([[graph.inputs[0]!.name, { part: 0, isSpatial: true, producer: undefined }]]);
  const head = findHead(graph, producers);
  // Attention comes between the parts before and after it.
  const firstCut = 1 + 2 * attention.filter(({ nodes }) => [...nodes].every((node) => head.has(node))).length;
  for (const node of graph.nodes) {
    if ([...node.attributes.keys()].some((name) => name.endsWith('_branch') || name === 'body'))
      throw new UncuttableError(`it has a node ${node.operator}`);
    const read = node.inputs.map((name) => tensors.get(name)).filter((found) => found !== undefined);
    if (read.length === 0) continue;
    const isSpatial = node.operator !== 'Shape' && read.some((found) => found.isSpatial);
    let part = Math.max(...read.map((found) => found.part));
    if (attention.some(({ nodes, queries }) => nodes.has(node) && node.inputs[0] === queries)) part += 1;
    if (attention.some(({ output }) => node.inputs.includes(output) && tensors.get(output)!.part === part)) part += 1;
    if (!head.has(node)) {
      part = Math.max(part, firstCut);
      // The norm reads what groups its channels.
      if (node.operator === 'Reshape' && graph.nodes.some((next) => isNormOf(next, node))) part += 1;
    }
    for (const name of node.outputs) tensors.set(name, { part, isSpatial, producer: node });
  }
  return { tensors, firstCut };
}

function isNormOf({ operator, inputs }: OnnxNode, node: OnnxNode): boolean {
  return operator === 'InstanceNormalization' && inputs[0] === node.outputs[0];
}

/** The nodes up to the first upsampling. */
function findHead(graph: OnnxFile, producers: ReadonlyMap<string, OnnxNode>): Set<OnnxNode> {
  const head = new Set<OnnxNode>();
  const first = graph.nodes.find(({ operator }) => upsampling.has(operator));
  if (first === undefined) throw new UncuttableError('it upsamples in another way');
  const names = [first.inputs[0]!];
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
  /** Tensors to compute. */
  targets: readonly string[];
  graph: OnnxFile;
  producers: ReadonlyMap<string, OnnxNode>;
  tensors: ReadonlyMap<string, Found>;
}

/** The nodes that compute tensors in a part, and what they read of earlier ones. */
function collect({ part, targets, graph, producers, tensors }: CollectOptions) {
  const nodes = new Set<OnnxNode>();
  const reads = new Set<string>();
  const names = [...targets];
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const found = tensors.get(name);
    // Shapes are computed where they are read, from the piece that is there.
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

/** Whether a node upsamples, or is the convolution after that. */
function isUpsampled(node: OnnxNode | undefined, producers: ReadonlyMap<string, OnnxNode>): boolean {
  if (node === undefined) return false;
  if (upsampling.has(node.operator)) return true;
  return node.operator === 'Conv' && upsampling.has(producers.get(node.inputs[0]!)?.operator ?? '');
}

interface DescribePartOptions extends Omit<CollectOptions, 'targets'> {
  outputs: readonly string[];
  measured: readonly string[];
  /** Number of the first part that is cut into rows. */
  firstCut: number;
  attention: readonly AttentionNodes[];
  elementType: number;
}

function describePart(options: DescribePartOptions): DecoderPart {
  const { part, outputs, measured, firstCut, attention, graph, producers, elementType } = options;
  const targets = [...new Set([...outputs, ...measured])];
  const { nodes, reads } = collect({ ...options, targets });
  const norms = new Map<OnnxNode, GivenNorm>();
  for (const node of part < firstCut ? [] : nodes) {
    if (node.operator !== 'InstanceNormalization') continue;
    const [input, scale] = node.inputs;
    const grouping = producers.get(input!);
    if (grouping?.operator !== 'Reshape') throw new UncuttableError('it has a norm that is no group norm');
    const groups = findConstant(graph, producers, scale!)?.shape[0];
    if (groups === undefined) throw new UncuttableError('it has a norm of an unknown number of groups');
    const names = { mean: `mean_${norms.size}`, inverse: `inverse_${norms.size}` };
    norms.set(node, {
      of: grouping.inputs[0]!,
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
    ...piecesOf(part >= firstCut, { nodes, reads, attention }),
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

/** How the part is cut. One that is an attention and nothing else is cut by its queries. */
function piecesOf(
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

/** The norm with the mean and the variance given: (x − mean) · inverse. Its scale and shift come after the groups. */
function normalize({ inputs: [input], outputs: [output] }: OnnxNode, { mean, inverse }: GivenNorm): Uint8Array[] {
  const centered = `${mean}_centered`;
  return [nodeBytes('Sub', [input!, mean], centered), nodeBytes('Mul', [centered, inverse], output!)];
}

function nodeBytes(operator: string, inputs: readonly string[], output: string): Uint8Array {
  return Buffer.concat([...inputs.map((name) => bytesField(1, name)), bytesField(2, output), bytesField(4, operator)]);
}

/** All activations have the type of the norms' scales. */
function typeOfNorms(
  graph: OnnxFile,
  producers: ReadonlyMap<string, OnnxNode>,
  isCut: (norm: OnnxNode) => boolean,
): number {
  const norm = graph.nodes.find((node) => node.operator === 'InstanceNormalization' && isCut(node));
  const scale = norm?.inputs[1];
  return (scale === undefined ? undefined : findConstant(graph, producers, scale)?.dataType) ?? float32;
}

/** A weight, or the value of a Constant node. */
function findConstant({ weights }: OnnxFile, producers: ReadonlyMap<string, OnnxNode>, name: string) {
  const node = producers.get(name);
  return weights.get(name) ?? (node?.operator === 'Constant' ? node.attributes.get('value')?.tensor : undefined);
}
