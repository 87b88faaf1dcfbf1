import { lastItem } from '@darkroom/core';
import type { OnnxFile, OnnxNode } from './read-onnx-file.ts';

/** softmax(q · kᵀ) · v: each output row needs one row of q, and all of k and v. */
export interface AttentionNodes {
  /** All nodes from the first product to the second. */
  readonly nodes: ReadonlySet<OnnxNode>;
  /** The tensor q. */
  readonly queries: string;
  readonly output: string;
}

const elementwise: ReadonlySet<string> = new Set(['Mul', 'Div', 'Add', 'Cast']);

/** Finds a graph's attentions. Those with more than scaling between the products are not recognized. */
export function findAttention(graph: OnnxFile, producers: ReadonlyMap<string, OnnxNode>): AttentionNodes[] {
  return graph.nodes
    .filter(({ operator }) => operator === 'Softmax')
    .flatMap((softmax) => {
      const before = chain(softmax, (node) => [producers.get(scoresOf(node, producers) ?? '')]);
      const after = chain(softmax, ({ outputs: [output = ''] }) => {
        return graph.nodes.filter(({ inputs }) => inputs.includes(output));
      });
      if (before === undefined || after === undefined) return [];
      const [queries, output] = [lastItem(before).inputs[0], lastItem(after).outputs[0]];
      const isSecond = lastItem(after).inputs[0] === after.at(-2)?.outputs[0];
      if (queries === undefined || output === undefined || !isSecond) return [];
      return [{ nodes: new Set([...before, ...after]), queries, output }];
    });
}

/** Follows elementwise nodes from a node to the next MatMul; returns undefined if the path leads elsewhere. */
function chain(start: OnnxNode, next: (node: OnnxNode) => readonly (OnnxNode | undefined)[]): OnnxNode[] | undefined {
  const nodes = [start];
  for (;;) {
    const [node, ...others] = next(lastItem(nodes));
    if (node === undefined || others.length > 0) return undefined;
    nodes.push(node);
    if (node.operator === 'MatMul') return nodes;
    if (!elementwise.has(node.operator)) return undefined;
  }
}

/** Returns the node's only computed input; undefined if several are computed. */
function scoresOf({ inputs }: OnnxNode, producers: ReadonlyMap<string, OnnxNode>): string | undefined {
  const computed = inputs.filter((name) => (producers.get(name)?.operator ?? 'Constant') !== 'Constant');
  return computed.length === 1 ? computed[0] : undefined;
}
