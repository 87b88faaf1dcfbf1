/** Short names of our schedulers (see `shortName`) by short names of other programs. */
const aliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    // AUTOMATIC1111, ComfyUI, InvokeAI
    eulera: 'eulerancestral',
    plms: 'pndm',
    unipcbh1: 'unipc',
    // diffusers, Replicate
    unipcmultistep: 'unipc',
    dpmsolvermultistep: 'dpmpp2m',
    dpmsolverpp: 'dpmpp2m',
    karrasdpm: 'dpmpp2mkarras',
  }),
);

/**
 * Returns the scheduler for a name, or undefined. Accepts our names and those of diffusers
 * (`EulerAncestralDiscreteScheduler`), AUTOMATIC1111 (`Euler a`, `DPM++ 2M Karras`), ComfyUI (`uni_pc`), k-diffusion
 * (`sample_euler`), fal and Replicate (`K_EULER_ANCESTRAL`).
 *
 * @param schedulers the schedulers of the model.
 */
export function findScheduler(name: string, schedulers: readonly string[]): string | undefined {
  const short = shortName(name);
  const wanted = [short, short.replace(/^(?:k|sample)/, '')].map((candidate) => aliases.get(candidate) ?? candidate);
  return (
    schedulers.find((scheduler) => scheduler === name) ?? schedulers.find((one) => wanted.includes(shortName(one)))
  );
}

/** Normalizes a name: `DPM++ 2M Karras` to `dpmpp2mkarras`, `EulerDiscreteScheduler` to `euler`. */
function shortName(name: string): string {
  const letters = name
    .toLowerCase()
    .replaceAll('+', 'p')
    .replaceAll(/[^a-z0-9]/g, '');
  return letters.replace(/scheduler$/, '').replace(/discrete$/, '');
}
