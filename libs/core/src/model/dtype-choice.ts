/** Choice of the model files to load, as in `MODEL_DTYPE` and `--dtype`. */

import type { Device } from './device.ts';

/** Storage type of a graph's weights. Only text models have q4. */
export const modelDtypes = ['int8', 'fp32', 'q4', 'fp16'] as const;
export type ModelDtype = (typeof modelDtypes)[number];

/** Smallest first, except fp16, which is slower than fp32 on a CPU. */
const smallFirst = modelDtypes;
const halfFirst = ['fp16', 'fp32', 'int8', 'q4'] as const satisfies readonly ModelDtype[];
const halfLast = ['fp32', 'int8', 'q4', 'fp16'] as const satisfies readonly ModelDtype[];

/**
 * Returns the order in which `auto` tries dtypes on a device: fp16 first on CUDA, where it is fastest.
 *
 * @param overflowsInHalf values of the part exceed the range of fp16, as in the VAE of SDXL
 */
export function autoDtypes(
  device: Device = 'cpu',
  { overflowsInHalf = false }: { overflowsInHalf?: boolean } = {},
): readonly ModelDtype[] {
  if (!device.startsWith('cuda')) return smallFirst;
  return overflowsInHalf ? halfLast : halfFirst;
}

/** Parts of a model that have a graph, by the names of their folders. No model has all of them. */
const textEncoders = ['text_encoder', 'text_encoder_2', 'text_encoder_3'] as const;
const modelParts = [...textEncoders, 'unet', 'transformer', 'vae_decoder', 'vae_encoder'] as const;
export type ModelPart = (typeof modelParts)[number];

/** A dtype for all parts of a model, and overrides for some. `auto`: the first that exists. */
export interface DtypeChoice {
  readonly all: ModelDtype | 'auto';
  readonly parts: Readonly<Partial<Record<ModelPart, ModelDtype | 'auto'>>>;
}

export const dtypeChoiceRange =
  'auto, fp32, fp16, int8 or (of text) q4, for single parts as in int8,vae_decoder=fp16; ' +
  `the parts are ${modelParts.join(', ')}`;

/** Parses a choice; undefined if it is invalid. Parts that are not named are `auto`. */
export function parseDtypeChoice(text: string): DtypeChoice | undefined {
  const chosen = new Map<string, ModelDtype | 'auto'>();
  for (const item of text.split(',')) {
    const [name, word, ...rest] = (item.includes('=') ? item : `all=${item}`).split('=').map((each) => each.trim());
    const part = (['all', ...modelParts] as const).find((known) => known === name);
    const dtype = (['auto', ...modelDtypes] as const).find((known) => known === word);
    if (part === undefined || dtype === undefined || rest.length > 0 || chosen.has(part)) return undefined;
    chosen.set(part, dtype);
  }
  const { all = 'auto', ...parts } = Object.fromEntries(chosen);
  return { all, parts };
}

/** Returns the dtype chosen for one part; undefined for `auto`. */
export function dtypeOfPart(choice: DtypeChoice, part: ModelPart): ModelDtype | undefined {
  const dtype = choice.parts[part] ?? choice.all;
  return dtype === 'auto' ? undefined : dtype;
}

/** Formats a choice canonically: equal choices give equal texts. */
export function dtypeChoiceText({ all, parts }: DtypeChoice): string {
  const single = modelParts.flatMap((part) => (parts[part] === undefined ? [] : [`${part}=${parts[part]}`]));
  return [all, ...single].join(',');
}
