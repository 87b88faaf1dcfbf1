import type { ModelDirectory } from '../model/model-directory.ts';
import type { LoadedGraph } from './load-graph.ts';
import type { ModelGraphs } from './model-graphs.ts';
import { createPromptEncoder, type PromptEncoder } from './prompt-encoder.ts';
import { tryGraph } from './try-graph.ts';

export interface LoadPromptEncoderOptions {
  model: ModelDirectory;
  graphs: ModelGraphs;
  /** Which of the model's text encoders, in the order of the pipeline's class; the first by default. */
  at?: number;
  /** Names of the graph's outputs that the pipeline reads. */
  outputs: (graph: LoadedGraph) => readonly string[];
  /** Dimensions of each of them for a text of so many tokens, as the other files of the model say. */
  gives: (tokens: number) => readonly (readonly number[])[];
}

export interface LoadedPromptEncoder {
  readonly encoder: PromptEncoder;
  /** What it gave for the text it was tried with, flat. */
  readonly trialOutputs: readonly Float32Array[];
}

/**
 * Loads a text encoder and calls it once, with the highest id that its tokenizer writes.
 *
 * @throws DarkroomError naming the file, if it cannot be loaded or does not fit.
 */
export async function loadPromptEncoder(options: LoadPromptEncoderOptions): Promise<LoadedPromptEncoder> {
  const { model, graphs, at = 0, outputs, gives } = options;
  const graph = await graphs.loadTextEncoder(at);
  const { tokenizer } = model.textEncoders[at]!;
  const encoder = createPromptEncoder({ tokenizer, session: graph.session, outputs: outputs(graph) });
  const { trialIds } = encoder.tokenizer;
  const takes = `input_ids [1, ${trialIds.length}] of ids up to ${tokenizer.highestId}`;
  const results = encoder.encodeIds(trialIds);
  const trialOutputs: Float32Array[] = [];
  for (const [position, dims] of gives(trialIds.length).entries()) {
    const run = async () => (await results)[position]!;
    trialOutputs.push((await tryGraph({ file: graph.file, run, takes, gives: dims })).data);
  }
  await graphs.settle();
  return { encoder, trialOutputs };
}
