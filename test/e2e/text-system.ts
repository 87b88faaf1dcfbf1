/** A system of its own for a file of tests about texts, with both writers that are in the box. */
import { afterAll, beforeAll } from 'vitest';
import { makeCaller } from './caller-model.ts';
import { patience, startSystem, stopSystem, type System } from './system.ts';

export const writer = 'emoji-writer';
export const blockWriter = 'emoji-writer-diffusion';

/** To be called where a file begins; the system is there once its tests run. */
export function useTextSystem({ withCaller = false } = {}): { readonly url: string } {
  let system: System | undefined;
  beforeAll(async () => {
    system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: patience });
    const directories = [writer, blockWriter].map((model) => `models/${model}`);
    if (withCaller) directories.push(await makeCaller());
    await Promise.all(directories.map((directory) => system!.start('worker', { MODEL_DIR: directory })));
  });
  afterAll(async () => {
    if (system !== undefined) await stopSystem(system);
  });
  return {
    get url() {
      return system!.url;
    },
  };
}
