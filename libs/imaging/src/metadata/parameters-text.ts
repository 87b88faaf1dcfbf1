import type { ImageRecipe } from '@darkroom/kinds';

/** Stable Diffusion web UI's names of the schedulers, which galleries and other tools recognize. */
const samplerNames: Readonly<Record<string, string>> = {
  ddim: 'DDIM',
  pndm: 'PLMS',
  euler: 'Euler',
  euler_ancestral: 'Euler a',
  dpmpp_2m: 'DPM++ 2M',
  dpmpp_2m_karras: 'DPM++ 2M Karras',
  dpmpp_2m_sde: 'DPM++ 2M SDE',
  dpmpp_2m_sde_karras: 'DPM++ 2M SDE Karras',
  unipc: 'UniPC',
  lcm: 'LCM',
  flow_match_euler: 'Euler',
};

/**
 * Formats an image's recipe like Stable Diffusion web UI (AUTOMATIC1111), which most tools read: the prompt with its
 * adapters, a line `Negative prompt: …` if there is one, and a line of values
 * (https://github.com/AUTOMATIC1111/stable-diffusion-webui/blob/master/modules/processing.py, create_infotext).
 */
export function parametersText(recipe: ImageRecipe): string {
  const { prompt, negative_prompt: negative, loras = [], strength, upscale } = recipe;
  const adapters = loras.map(({ id, scale }) => ` <lora:${id}:${scale}>`).join('');
  const values: [string, string | number | undefined][] = [
    ['Steps', recipe.num_inference_steps],
    ['Sampler', samplerNames[recipe.scheduler] ?? recipe.scheduler],
    ['CFG scale', recipe.guidance_scale],
    ['Seed', recipe.seed],
    ['Size', recipe.size],
    ['Model', recipe.model],
    ['Denoising strength', strength],
    ['Hires upscale', upscale],
    ['Version', 'Darkroom'],
  ];
  const known = values.filter(([, value]) => value !== undefined);
  const lines = [
    prompt + adapters,
    ...(negative === '' ? [] : [`Negative prompt: ${negative}`]),
    known.map(([name, value]) => `${name}: ${value}`).join(', '),
  ];
  // A NUL would end the text for its readers.
  return lines.join('\n').replaceAll('\0', '');
}
