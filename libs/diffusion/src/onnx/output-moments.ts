/**
 * Rewrites a VAE encoder's graph to output the moments of the latents' distribution: means and log variances,
 * concatenated along the channels. Graphs of diffusers' own exporter return mean + deviation · noise with noise drawn
 * inside the graph, which no seed reproduces; some graphs return the mean.
 */
import { modelFileError } from '@darkroom/runtime/model-file';
import { dtypeOfWeights } from './dtype-of-weights.ts';
import type { OnnxFile, OnnxNode } from './read-onnx-file.ts';
import { writeOnnxFile } from './write-onnx-file.ts';

/** Operators that torch's `chunk`, which halves the channels, is exported as. */
const splitOperators: ReadonlySet<string> = new Set(['Slice', 'Split']);
const random: ReadonlySet<string> = new Set(['RandomNormal', 'RandomNormalLike']);
/** ONNX's element type numbers. */
const [float32, float16] = [1, 10];

/**
 * Returns the rewritten graph's bytes; undefined if the graph needs no change.
 *
 * @param file for error messages: relative to the model's directory.
 * @throws DarkroomError `model_unsupported` if the graph draws noise in an unknown way.
 */
export function outputMoments(graph: OnnxFile, file: string): Uint8Array | undefined {
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
  throw modelFileError(file, `draws noise in the graph, which no seed reproduces; expected ${expected}`);
}

function findMoments({ nodes, outputs }: OnnxFile): string | undefined {
  const producers = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  const producerOf = (name: string | undefined): OnnxNode | undefined => {
    const node = producers.get(name ?? '');
    return node?.operator === 'Cast' ? producerOf(node.inputs[0]) : node;
  };
  const last = producerOf(outputs[0]?.name);
  const ends = last?.operator === 'Add' ? last.inputs.map(producerOf) : [last];
  return ends.find((node) => node !== undefined && splitOperators.has(node.operator))?.inputs[0];
}

/** Returns the nodes that compute a tensor, in the order of the file. */
function nodesBefore({ nodes }: OnnxFile, tensor: string): OnnxNode[] {
  const needed = new Set([tensor]);
  const found = nodes.toReversed().filter((node) => {
    if (!node.outputs.some((name) => needed.has(name))) return false;
    for (const name of node.inputs) needed.add(name);
    return true;
  });
  return found.toReversed();
}
