import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoadedGraph, loadGraph } from '../onnx/load-graph.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { DenoiserBatch, type DenoiserRow } from './denoiser-batch.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');

const latentDims = [16, 4, 6] as const;
const rowOf = (seed: number, tokens: number): DenoiserRow => ({
  timestep: 100 * seed,
  writeSample: (target, offset) => {
    for (let at = 0; at < 16 * 4 * 6; at++) target[offset + at] = Math.sin(at * seed);
  },
  conditioning: {
    encoder_hidden_states: Float32Array.from({ length: tokens * 32 }, (_, at) => Math.cos(at * seed)),
    original_size: Float32Array.of(32, 48),
    target_size: Float32Array.of(32, 48),
    crop_coords: new Float32Array(2),
  },
});

describe('a batch of a transformer whose prompts have no fixed length', () => {
  let graph: LoadedGraph;
  beforeAll(async () => {
    const model = await readModelDirectory(resolve(vectors, 'cogview4/model'));
    graph = await loadGraph(model, model.graphs.denoiser, { threads: 1 });
  });
  afterAll(() => graph.session.dispose());

  it('makes one call per prompt length, and each row gets the same output as alone', async () => {
    const calls: number[] = [];
    const run: typeof graph.session.run = (feeds, output) => {
      calls.push(feeds['hidden_states']!.dims[0]!);
      return graph.session.run(feeds, output);
    };
    const batch = new DenoiserBatch(
      { ...graph, session: { ...graph.session, run } },
      {
        sample: 'hidden_states',
        conditioning: {
          encoder_hidden_states: ['open', 32],
          original_size: [2],
          target_size: [2],
          crop_coords: [2],
        },
      },
    );
    const rows = [rowOf(1, 16), rowOf(2, 48), rowOf(3, 16), rowOf(4, 32), rowOf(5, 16), rowOf(6, 48)];
    const together = await batch.run(rows, latentDims);
    expect(calls).toEqual([3, 2, 1]);
    for (const row of rows) expect(together.get(row)).toEqual((await batch.run([row], latentDims)).get(row));
  });

  it('takes prompts of any length, unless the graph fixes the length', () => {
    const { session } = graph;
    const inputs = session.inputs.map((input) =>
      input.name === 'encoder_hidden_states' ? { ...input, shape: ['batch', 77, 32] } : input,
    );
    const conditioning = {
      encoder_hidden_states: ['open', 32],
      original_size: [2],
      target_size: [2],
      crop_coords: [2],
    } as const;
    const batches = [graph, { ...graph, session: { ...session, inputs } }].map(
      (each) => new DenoiserBatch(each, { sample: 'hidden_states', conditioning }),
    );
    expect(batches.map(({ takesAnyLength }) => takesAnyLength)).toEqual([true, false]);
  });
});
