import { mapNonEmpty } from '@darkroom/core';
import type { ImageCard } from '@darkroom/kinds';
import { type LoadedGraph, tryGraph } from '../onnx/load-graph.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { Conditioning, DenoiserBatch, DenoiserRow } from './denoiser-batch.ts';
import type { VaeDecoder } from '../vae/vae-decoder.ts';

export interface TryImageGraphsOptions {
  model: ModelDirectory;
  denoiser: LoadedGraph;
  batch: DenoiserBatch;
  vaeDecoder: VaeDecoder;
  /** Conditioning of any prompt. */
  conditioning: Conditioning;
}

/**
 * Latent rows with which even the parts at latent resolution are tiled. The smallest tile has 3 rows, and depends on 3
 * more on either side.
 */
const minTiledRows = 16;

/**
 * Returns the side in pixels of the smallest image that tests a model; a model with one size is tested at that size.
 */
export function smallestSide({ sizes: { min, max, multiple } }: ImageCard): number {
  return min === max ? min : multiple;
}

/**
 * Calls the denoiser and the decoder once, with small latents. @throws DarkroomError naming the file that does not fit.
 */
export async function tryImageGraphs(options: TryImageGraphsOptions): Promise<void> {
  const { model, denoiser, batch, vaeDecoder, conditioning } = options;
  const { latents, card, denoiser: denoiserConfig } = model;
  const { min, max } = card.sizes;
  const side = smallestSide(card) / latents.factor;
  const latentDims = [latents.channels, side, side] as const;
  const writeSample: DenoiserRow['writeSample'] = (target, offset) =>
    target.fill(0, offset, offset + denoiserConfig.inChannels * side * side);
  // Try two different timesteps in one call if the graph takes one per row.
  const timesteps = batch.hasTimestepPerRow ? ([1, 2] as const) : ([1] as const);
  const rows = mapNonEmpty(timesteps, (timestep) => ({ writeSample, timestep, conditioning }));
  await tryGraph({
    file: denoiser.file,
    run: () => batch.runTogether(rows, latentDims),
    inputs: batch.describeInputs(rows, latentDims),
    outputDims: [rows.length, ...latentDims],
  });

  const { file, session, maxUntiledPixels: wholePixels } = vaeDecoder.options;
  const sample = { data: new Float32Array(latents.channels * side * side), dims: [1, ...latentDims] };
  await tryGraph({
    file,
    run: () => session.run({ latent_sample: sample }),
    inputs: `latent_sample [${sample.dims.join(', ')}]`,
    outputDims: [1, 3, side * latents.factor, side * latents.factor],
  });
  const height = min === max ? side : Math.max(side, minTiledRows);
  if (max ** 2 > wholePixels) await vaeDecoder.tryTiles([latents.channels, height, side]);
}
