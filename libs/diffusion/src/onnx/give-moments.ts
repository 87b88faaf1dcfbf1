/**
 * Of a VAE's encoder that gives latents, a graph that gives what they are made of: means and logarithms of variances, side by
 * side along the channels. Those of diffusers' own exporter give mean + deviation · noise, drawn by the graph itself, which
 * nobody can draw again; some give the mean.
 */
import { modelFileError } from '../model/model-file.ts';
import { dtypeOfWeights } from './dtype-of-weights.ts';
import type { OnnxFile, OnnxNode } from './read-onnx-file.ts';
import { writeOnnxFile } from './write-onnx-file.ts';

/** What torch's `chunk`, which halves the channels, is exported as. */
const halvings: ReadonlySet<string> = new Set(['Slice', 'Split']);
const random: ReadonlySet<string> = new Set(['RandomNormal', 'RandomNormalLike']);
/** ONNX's numbers of element types. */
const [float32, float16] = [1, 10];

/**
 * @param file for messages: relative to the model's directory.
 * @returns the bytes of such a graph; undefined if the graph may stay as it is.
 * @throws DarkroomError `model_unsupported` if it draws noise in a way that is not known.
 */
export function giveMoments(graph: OnnxFile, file: string): Uint8Array | undefined {
  const moments = findMoments(graph);
  if (moments !== undefined) {
    const elementType = dtypeOfWeights(graph.tensors) === 'fp16' ? float16 : float32;
    const inputs = graph.inputs.map(({ name }) => ({ name, elementType }));
    const outputs = [{ name: moments, elementType }];
    return writeOnnxFile(graph, { nodes: nodesBefore(graph, moments), inputs, outputs });
  }
  if (!graph.nodes.some(({ operator }) => random.has(operator))) return undefined;
  const expected =
    'the latents, their means and logarithms of variances, or a sample of those made of mean and deviation';
  throw modelFileError(file, `draws noise by itself, which no seed gives again; expected ${expected}`);
}

function findMoments({ nodes, outputs }: OnnxFile): string | undefined {
  const producers = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  const producerOf = (name: string | undefined): OnnxNode | undefined => {
    const node = producers.get(name ?? '');
    return node?.operator === 'Cast' ? producerOf(node.inputs[0]) : node;
  };
  const last = producerOf(outputs[0]?.name);
  const ends = last?.operator === 'Add' ? last.inputs.map(producerOf) : [last];
  return ends.find((node) => node !== undefined && halvings.has(node.operator))?.inputs[0];
}

/** The nodes that a tensor is computed by, in the order of the file. */
function nodesBefore({ nodes }: OnnxFile, tensor: string): OnnxNode[] {
  const needed = new Set([tensor]);
  const found = nodes.toReversed().filter((node) => {
    if (!node.outputs.some((name) => needed.has(name))) return false;
    for (const name of node.inputs) needed.add(name);
    return true;
  });
  return found.toReversed();
}
