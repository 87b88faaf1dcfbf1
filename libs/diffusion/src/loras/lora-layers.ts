/** Layers of a denoiser that take adapters, and what files of adapters call them. */
import type { OnnxValue } from '../onnx/read-onnx-file.ts';

/** Columns of A that the graph takes as one product (tools/export/export_model/loras.py says why). */
export const loraBlock = 16;
/** The input that says which adapter each row of the batch has. */
export const loraRowsInput = 'lora_rows';

/** A layer's product with a weight. */
export interface LoraLayer {
  /** As torch calls it: `down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q`. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
}

/** The inputs that a layer's adapter comes by: [loras, blocks, inputs, 16] and [loras, 16 · blocks, outputs]. */
export function loraInputsOf({ name }: LoraLayer): { a: string; b: string } {
  return { a: `${name}.lora_A`, b: `${name}.lora_B` };
}

/** The layers of a graph, by its inputs. */
export function loraLayersOf(inputs: readonly OnnxValue[]): LoraLayer[] {
  const widths = new Map(inputs.map(({ name, shape }) => [name, shape] as const));
  return inputs.flatMap(({ name, shape }) => {
    if (!name.endsWith('.lora_A')) return [];
    const layer = name.slice(0, -'.lora_A'.length);
    return [{ name: layer, inputs: Number(shape[2]), outputs: Number(widths.get(`${layer}.lora_B`)?.[2]) }];
  });
}

/** What a tensor of a file is to its layer. */
export type LoraRole = 'down' | 'up' | 'alpha';

const roles: readonly [suffix: string, role: LoraRole][] = [
  // PEFT, and with it diffusers
  ['.lora_A.weight', 'down'],
  ['.lora_B.weight', 'up'],
  // kohya
  ['.lora_down.weight', 'down'],
  ['.lora_up.weight', 'up'],
  ['.alpha', 'alpha'],
  // diffusers before PEFT
  ['.lora.down.weight', 'down'],
  ['.lora.up.weight', 'up'],
  ['_lora.down.weight', 'down'],
  ['_lora.up.weight', 'up'],
  ['.lora_linear_layer.down.weight', 'down'],
  ['.lora_linear_layer.up.weight', 'up'],
];
const prefixes = ['base_model.model.', 'unet.', 'transformer.', 'lora_unet_', 'lora_transformer_'];

/** What the name of a tensor says; undefined where it is none of an adapter. */
export function readLoraName(name: string): { layer: string; role: LoraRole } | undefined {
  const found = roles.find(([suffix]) => name.endsWith(suffix));
  if (found === undefined) return undefined;
  const [suffix, role] = found;
  return { layer: name.slice(0, -suffix.length), role };
}

/** Whether a layer, as a file calls it, is one of a text encoder. */
export function isOfTextEncoder(layer: string): boolean {
  return /^(?:text_encoder|lora_te)/.test(layer);
}

/** Finds layers by the names that files give them. kohya writes dots as underlines, so that dots are compared as such. */
export class LoraLayerNames {
  readonly #layers: ReadonlyMap<string, LoraLayer>;

  constructor(layers: readonly LoraLayer[]) {
    this.#layers = new Map(layers.map((layer) => [flat(layer.name), layer]));
  }

  find(name: string): LoraLayer | undefined {
    const known = flat(withoutPrefix(name).replace('.processor.', '.'));
    // The first output layer is the one with weights; diffusers called the adapter by the list of them.
    const candidates = [known, `${known}_0`, ofOriginalBlocks(known)];
    return candidates.map((candidate) => this.#layers.get(candidate)).find((layer) => layer !== undefined);
  }
}

function flat(name: string): string {
  return name.replaceAll('.', '_');
}

function withoutPrefix(name: string): string {
  const prefix = prefixes.find((each) => name.startsWith(each));
  return prefix === undefined ? name : withoutPrefix(name.slice(prefix.length));
}

/**
 * Files for SDXL name blocks as Stability's code does: two layers and a change of size in each. As diffusers reads them
 * (`_maybe_map_sgm_blocks_to_diffusers`).
 */
function ofOriginalBlocks(name: string): string {
  const [, part, number, rest] = /^(input|middle|output)_blocks?_(\d+)_(?:1_)?(.*)$/.exec(name) ?? [];
  if (part === undefined) return name;
  const at = Number(number);
  if (part === 'middle') return `mid_block_attentions_0_${rest}`;
  const [side, index] = part === 'input' ? ['down', at - 1] : ['up', at];
  return `${side}_blocks_${Math.floor(index / 3)}_attentions_${index % 3}_${rest}`;
}
