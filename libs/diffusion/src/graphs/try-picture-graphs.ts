import type { PictureCard } from '@darkroom/kinds';
import { type LoadedGraph, tryGraph } from './load-graph.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { Conditioning, DenoiserBatch, DenoiserRow } from './denoiser-batch.ts';
import type { VaeDecoder } from '../vae/vae-decoder.ts';

export interface TryPictureGraphsOptions {
  model: ModelDirectory;
  denoiser: LoadedGraph;
  batch: DenoiserBatch;
  vaeDecoder: VaeDecoder;
  /** Of any prompt. */
  conditioning: Conditioning;
}

/**
 * Rows of latents that even the parts at their resolution are cut in. The smallest pieces have 3, and as many on either
 * side that they depend on.
 */
const rowsToCut = 16;

/** Pixels of the least work that tells something, unless the model does one size only. */
export function smallestSide({ sizes: { min, max, multiple } }: PictureCard): number {
  return min === max ? min : multiple;
}

/** Calls the denoiser and the decoder once, on small latents. @throws DarkroomError naming the file that does not fit. */
export async function tryPictureGraphs(options: TryPictureGraphsOptions): Promise<void> {
  const { model, denoiser, batch, vaeDecoder, conditioning } = options;
  const { latents, card, denoiser: denoiserFacts } = model;
  const { min, max } = card.sizes;
  const side = smallestSide(card) / latents.factor;
  const latentDims = [latents.channels, side, side] as const;
  const writeSample: DenoiserRow['writeSample'] = (target, offset) =>
    target.fill(0, offset, offset + denoiserFacts.inChannels * side * side);
  // Two steps at once, where the graph says that each row may have its own.
  const timesteps = batch.hasTimestepPerRow ? [1, 2] : [1];
  const rows = timesteps.map((timestep) => ({ writeSample, timestep, conditioning }));
  await tryGraph({
    file: denoiser.file,
    run: () => batch.runTogether(rows, latentDims),
    takes: batch.describeInputs(rows, latentDims),
    gives: [rows.length, ...latentDims],
  });

  const { file, session, wholePixels } = vaeDecoder.options;
  const sample = { data: new Float32Array(latents.channels * side * side), dims: [1, ...latentDims] };
  await tryGraph({
    file,
    run: () => session.run({ latent_sample: sample }, session.outputs[0]!.name),
    takes: `latent_sample [${sample.dims.join(', ')}]`,
    gives: [1, 3, side * latents.factor, side * latents.factor],
  });
  const height = min === max ? side : Math.max(side, rowsToCut);
  if (max ** 2 > wholePixels) await vaeDecoder.tryPieces([latents.channels, height, side]);
}
