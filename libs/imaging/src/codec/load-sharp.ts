import type sharp from 'sharp';

/** Loaded with the first image, so that processes without images never load it. */
let loading: Promise<typeof sharp> | undefined;

/**
 * Loads sharp, set to one thread per call, because the cores belong to the engine, and without a cache between calls.
 */
export function loadSharp(): Promise<typeof sharp> {
  return (loading ??= import('sharp').then(({ default: loaded }) => {
    loaded.concurrency(1);
    loaded.cache(false);
    return loaded;
  }));
}
