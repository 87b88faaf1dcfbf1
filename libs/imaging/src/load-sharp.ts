import type sharp from 'sharp';

/** From the first picture on: until then, and by who only writes, it is not needed. */
let loading: Promise<typeof sharp> | undefined;

/** sharp, with one thread for each call, because the cores belong to the engine, and nothing kept between calls. */
export function loadSharp(): Promise<typeof sharp> {
  return (loading ??= import('sharp').then(({ default: loaded }) => {
    loaded.concurrency(1);
    loaded.cache(false);
    return loaded;
  }));
}
