import type { ImageRequest } from '../requests.ts';

/** Darkroom's schedulers by Stable Diffusion web UI's names, in lower case. */
const schedulers: Readonly<Record<string, string>> = {
  ddim: 'ddim',
  plms: 'pndm',
  euler: 'euler',
  'euler a': 'euler_ancestral',
  'dpm++ 2m': 'dpmpp_2m',
  'dpm++ 2m karras': 'dpmpp_2m_karras',
  'dpm++ 2m sde': 'dpmpp_2m_sde',
  'dpm++ 2m sde karras': 'dpmpp_2m_sde_karras',
  unipc: 'unipc',
  lcm: 'lcm',
};

const valuesLine = /^Steps: \d/;
const negativeMark = 'Negative prompt: ';
/** Matches a name and a value, which may be quoted; separated by commas. */
const valuePattern = /(?<name>[\w+][\w +/-]*): ?(?<value>"(?:\\.|[^"\\])*"|[^,]*)/g;

/**
 * Parses an image's parameters in Stable Diffusion web UI's format; ignores unknown ones. Returns undefined for other
 * texts.
 */
export function parseParameters(text: string): Partial<ImageRequest> | undefined {
  const lines = text.trimEnd().split('\n');
  const last = lines.findLastIndex((line) => valuesLine.test(line));
  if (last === -1) return undefined;
  const values = new Map<string, string>();
  for (const { groups } of lines[last]!.matchAll(valuePattern)) values.set(groups!['name']!, groups!['value']!.trim());
  const promptLines = lines.slice(0, last);
  const negativeAt = promptLines.findIndex((line) => line.startsWith(negativeMark));
  const prompt = promptLines.slice(0, negativeAt === -1 ? promptLines.length : negativeAt).join('\n');
  const negative = negativeAt === -1 ? '' : promptLines.slice(negativeAt).join('\n').slice(negativeMark.length);
  return { prompt: prompt.trim(), negative_prompt: negative.trim(), ...fieldsOf(values) };
}

function fieldsOf(values: ReadonlyMap<string, string>): Partial<ImageRequest> {
  const numberOf = (name: string): number | undefined => {
    const value = values.get(name);
    return value === undefined || !Number.isFinite(Number(value)) || value === '' ? undefined : Number(value);
  };
  const scheduler = schedulers[samplerOf(values).toLowerCase()];
  const size = values.get('Size');
  const model = values.get('Model');
  const fields = {
    num_inference_steps: numberOf('Steps'),
    guidance_scale: numberOf('CFG scale'),
    seed: numberOf('Seed'),
    size: size !== undefined && /^\d{1,5}x\d{1,5}$/.test(size) ? size : undefined,
    model,
    scheduler,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<ImageRequest>;
}

/** Since version 1.9 the schedule is a separate field. */
function samplerOf(values: ReadonlyMap<string, string>): string {
  const sampler = values.get('Sampler') ?? '';
  return values.get('Schedule type') === 'Karras' && !sampler.endsWith('Karras') ? `${sampler} Karras` : sampler;
}
