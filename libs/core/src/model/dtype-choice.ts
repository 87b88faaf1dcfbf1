/** Which of a model's files are to be loaded, as `MODEL_DTYPE` and `--dtype` say it. */

/** How a graph's weights are kept. In the order in which `auto` takes them. Only text has 4 bits. */
export const modelDtypes = ['int8', 'fp32', 'q4', 'fp16'] as const;
export type ModelDtype = (typeof modelDtypes)[number];

/** The parts of a model that have a graph, by the names of their folders. No model has all of them. */
const textEncoders = ['text_encoder', 'text_encoder_2', 'text_encoder_3'] as const;
const modelParts = [...textEncoders, 'unet', 'transformer', 'vae_decoder', 'vae_encoder'] as const;
export type ModelPart = (typeof modelParts)[number];

/** A dtype for all parts of a model, and others for some. `auto` is the first there is. */
export interface DtypeChoice {
  readonly all: ModelDtype | 'auto';
  readonly parts: Readonly<Partial<Record<ModelPart, ModelDtype | 'auto'>>>;
}

export const dtypeChoiceRange = `auto, fp32, fp16, int8 or (of text) q4, for single parts as in int8,vae_decoder=fp16; the parts are ${modelParts.join(', ')}`;

/** Reads such a text; undefined when it is none. What is said of no part is `auto`. */
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

/** The dtype chosen for one part; undefined for `auto`. */
export function dtypeOfPart(choice: DtypeChoice, part: ModelPart): ModelDtype | undefined {
  const dtype = choice.parts[part] ?? choice.all;
  return dtype === 'auto' ? undefined : dtype;
}

/** The same text for the same choice. */
export function dtypeChoiceText({ all, parts }: DtypeChoice): string {
  const single = modelParts.flatMap((part) => (parts[part] === undefined ? [] : [`${part}=${parts[part]}`]));
  return [all, ...single].join(',');
}
