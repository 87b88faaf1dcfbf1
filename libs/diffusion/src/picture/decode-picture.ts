import type { RowOutput } from '@darkroom/core';
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import { interleaveSample } from './latents-to-rgb.ts';
import type { PictureRow } from './picture-row.ts';
import type { VaeDecoder } from '../vae/vae-decoder.ts';

/** What a finished row has become. @throws DarkroomError if the decoder fails. */
export async function decodePicture(
  { latents, latentDims, request: { width, height }, seed, cutTokens }: PictureRow,
  { vaeDecoder, facts }: { vaeDecoder: VaeDecoder; facts: LatentFacts },
): Promise<RowOutput> {
  const scaling = Math.fround(facts.scalingFactor);
  const shift = Math.fround(facts.shiftFactor);
  const scaled = latents.map((value) => Math.fround(value / scaling) + shift);
  const cuts = {
    ...(cutTokens.prompt > 0 && { promptTokensCut: cutTokens.prompt }),
    ...(cutTokens.negativePrompt > 0 && { negativePromptTokensCut: cutTokens.negativePrompt }),
  };
  return {
    data: interleaveSample(await vaeDecoder.decode(scaled, latentDims)),
    facts: { seed, width, height, ...cuts },
  };
}
