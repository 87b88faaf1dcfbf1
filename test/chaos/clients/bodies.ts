/** Request bodies: short images and texts in few variants, so that each repeats and its outputs can be compared. */
import type { Dice } from '../dice.ts';
import type { Body } from '../history.ts';

const variants = 8;
const schedulers = ['ddim', 'euler', 'dpmpp_2m', 'euler_ancestral'];
const prompts = ['a red apple on a white background', 'a fox on a green background', 'something sweet'];

/** Models of system.ts with cumulative shares of the requests. */
const shares: readonly (readonly [share: number, model: string])[] = [
  [0.4, 'emoji-sd'],
  [0.55, 'emoji-writer'],
  [0.67, 'emoji-writer-diffusion'],
  [0.76, 'upstream'],
  [0.85, 'module'],
  [0.9, 'comfyui'],
  [0.95, 'sdcpp'],
  [1, 'openai-images'],
];
export const imageModels = ['emoji-sd', 'comfyui', 'sdcpp', 'openai-images'];
/** Models with the same outputs for the same body. */
const deterministic = new Set(['emoji-sd', 'emoji-writer', 'emoji-writer-diffusion']);

export interface Variant {
  body: Body;
  same?: string;
}

export type Bodies = (dice: Dice) => Variant;

/** Returns the variants of each model. */
export function variantsOf(dice: Dice): Map<string, Variant[]> {
  return new Map(
    shares.map(([, model]) => {
      const bodies = Array.from({ length: variants }, (_value, seed) => bodyOf(model, seed, dice));
      return [model, bodies.map((body) => ({ body, ...(deterministic.has(model) && { same: JSON.stringify(body) }) }))];
    }),
  );
}

export function chooseVariant(all: ReadonlyMap<string, readonly Variant[]>, dice: Dice): Variant {
  const at = dice.next();
  const [, model] = shares.find(([share]) => at < share)!;
  return dice.pick(all.get(model)!);
}

function bodyOf(model: string, seed: number, dice: Dice): Body {
  const prompt = dice.pick(prompts);
  // A third of the variants runs long enough for checkpoints.
  const isLong = seed % 3 === 0;
  if (model === 'emoji-sd')
    return {
      model,
      prompt,
      seed,
      size: '64x64',
      n: dice.chance(0.25) ? 2 : 1,
      num_inference_steps: isLong ? dice.between(20, 40) : dice.between(2, 6),
      guidance_scale: dice.pick([1, 5]),
      scheduler: dice.pick(schedulers),
      preview: dice.chance(0.3) ? { every: 2 } : 'off',
    };
  if (model === 'openai-images') return { model, prompt, size: '64x64' };
  if (model === 'comfyui' || model === 'sdcpp')
    return { model, prompt, size: '64x64', n: dice.chance(0.25) ? 2 : 1, num_inference_steps: dice.between(2, 40) };
  const tokens = isLong ? dice.between(30, 50) : dice.between(4, 16);
  const isOurs = deterministic.has(model);
  return {
    model,
    prompt,
    seed,
    max_tokens: isOurs ? tokens : 4 * tokens,
    temperature: 1,
    ignore_eos: isOurs || undefined,
  };
}
