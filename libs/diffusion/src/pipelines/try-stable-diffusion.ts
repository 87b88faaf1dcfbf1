import type { ModelDirectory } from '../model-directory.ts';
import type { LoadedGraph } from '../load-graph.ts';
import type { PromptEncoder } from './prompt-encoder.ts';
import { tryGraph } from './try-graph.ts';
import type { UnetBatch, UnetBatchRow } from './unet-batch.ts';

export interface TryStableDiffusionOptions {
  model: ModelDirectory;
  textEncoder: LoadedGraph;
  promptEncoder: PromptEncoder;
  unet: LoadedGraph;
  unetBatch: UnetBatch;
  vaeDecoder: LoadedGraph;
}

/**
 * Calls each graph once, the UNet with what the text encoder gave, on small latents.
 *
 * @throws DarkroomError naming the file that does not fit.
 */
export async function tryStableDiffusion(options: TryStableDiffusionOptions): Promise<void> {
  const { model, textEncoder, promptEncoder, unet, unetBatch, vaeDecoder } = options;
  const { tokenizer, latents, card } = model;
  const { maxTokens, highestId, startId, endId, padId } = tokenizer;
  const ids = [startId, highestId, endId];
  while (ids.length < maxTokens) ids.push(padId);
  const { data: embedding } = await tryGraph({
    file: textEncoder.file,
    run: () => promptEncoder.encodeIds(ids),
    takes: `input_ids [1, ${maxTokens}] of ids up to ${highestId}`,
    gives: [1, maxTokens, model.embeddingWidth],
  });

  // The least work, unless the model does one size only.
  const { min, max, multiple } = card.sizes;
  const side = (min === max ? min : multiple) / latents.factor;
  const latentDims = [latents.channels, side, side] as const;
  const writeSample: UnetBatchRow['writeSample'] = (target, offset) =>
    target.fill(0, offset, offset + latents.channels * side * side);
  // Two steps at once, where the graph says that each row may have its own.
  const rows = (unetBatch.hasTimestepPerRow ? [1, 2] : [1]).map((timestep) => ({ writeSample, timestep, embedding }));
  const embeddings = `encoder_hidden_states [${rows.length}, ${maxTokens}, ${embedding.length / maxTokens}]`;
  await tryGraph({
    file: unet.file,
    run: () => unetBatch.run(rows, latentDims),
    takes: `sample [${[rows.length, ...latentDims].join(', ')}] and ${embeddings}`,
    gives: [rows.length, ...latentDims],
  });

  const sample = { data: new Float32Array(latents.channels * side * side), dims: [1, ...latentDims] };
  await tryGraph({
    file: vaeDecoder.file,
    run: () => vaeDecoder.session.run({ latent_sample: sample }, vaeDecoder.session.outputs[0]!.name),
    takes: `latent_sample [${sample.dims.join(', ')}]`,
    gives: [1, 3, side * latents.factor, side * latents.factor],
  });
}
