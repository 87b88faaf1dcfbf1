/** Layers that take adapters, and their names in adapter files. */
import type { OnnxValue } from '../onnx/read-onnx-file.ts';

/** Rank columns that the graph multiplies as one block; tools/export/export_model/loras.py explains why. */
export const loraBlock = 16;
/** The input with the index of each row's adapter set. */
export const loraRowsInput = 'lora_rows';

/** A matrix multiplication with a weight. */
export interface LoraLayer {
  /** The name in PyTorch: `down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q`. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
}

/** Returns the two inputs of a layer's adapter: [loras, blocks, inputs, 16] and [loras, 16 · blocks, outputs]. */
export function loraInputsOf({ name }: LoraLayer): { a: string; b: string } {
  return { a: `${name}.lora_A`, b: `${name}.lora_B` };
}

/** Returns the layers of a graph that take adapters, found by the names of its inputs. */
export function loraLayersOf(inputs: readonly OnnxValue[]): LoraLayer[] {
  const widths = new Map(inputs.map(({ name, shape }) => [name, shape] as const));
  return inputs.flatMap(({ name, shape }) => {
    if (!name.endsWith('.lora_A')) return [];
    const layer = name.slice(0, -'.lora_A'.length);
    return [{ name: layer, inputs: Number(shape[2]), outputs: Number(widths.get(`${layer}.lora_B`)?.[2]) }];
  });
}

/** The role of a tensor in its layer's adapter. */
export type LoraRole = 'down' | 'up' | 'alpha';

const roles: readonly [suffix: string, role: LoraRole][] = [
  // PEFT and current diffusers
  ['.lora_A.weight', 'down'],
  ['.lora_B.weight', 'up'],
  // kohya
  ['.lora_down.weight', 'down'],
  ['.lora_up.weight', 'up'],
  ['.alpha', 'alpha'],
  // diffusers before it used PEFT
  ['.lora.down.weight', 'down'],
  ['.lora.up.weight', 'up'],
  ['_lora.down.weight', 'down'],
  ['_lora.up.weight', 'up'],
  ['.lora_linear_layer.down.weight', 'down'],
  ['.lora_linear_layer.up.weight', 'up'],
];
const prefixes = [
  'base_model.model.',
  'unet.',
  'transformer.',
  'lora_unet_',
  'lora_transformer_',
  'text_model.',
  'text_model_',
];

/** Splits the name of a tensor into layer and role; returns undefined if it is not an adapter's tensor. */
export function readLoraName(name: string): { layer: string; role: LoraRole } | undefined {
  const found = roles.find(([suffix]) => name.endsWith(suffix));
  if (found === undefined) return undefined;
  const [suffix, role] = found;
  return { layer: name.slice(0, -suffix.length), role };
}

/** Matches layers of text encoders: kohya's `lora_te_`, `lora_te2_`, diffusers' `text_encoder.`, `text_encoder_2.`. */
const textEncoderPattern =
  /^(?:base_model\.model\.)?(?:lora_te(?<kohya>\d*)_|text_encoder(?:_(?<diffusers>\d+))?\.)(?<layer>.+)$/;

/**
 * Reads a file's name for a layer of a text encoder.
 *
 * @returns `at`: the encoder's index from 0, in the order of the pipeline's class; undefined for a layer of the
 * denoiser.
 */
export function readTextEncoderLayer(name: string): { at: number; layer: string } | undefined {
  const { kohya, diffusers, layer } = textEncoderPattern.exec(name)?.groups ?? {};
  if (layer === undefined) return undefined;
  return { at: Number(kohya || diffusers || 1) - 1, layer };
}

/**
 * Finds layers by their names in adapter files. kohya writes underscores for dots, so both are compared as underscores.
 */
export class LoraLayerNames {
  readonly #layers: ReadonlyMap<string, LoraLayer>;

  constructor(layers: readonly LoraLayer[]) {
    this.#layers = new Map(layers.map((layer) => [flat(layer.name), layer]));
  }

  find(name: string): LoraLayer | undefined {
    const known = flat(withoutPrefix(name).replace('.processor.', '.'));
    // `to_out` is a list in diffusers; its first entry has the weights. Older files name the list.
    const candidates = [known, `${known}_0`, toDiffusersBlocks(known)];
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
 * Converts block names of Stability's code, which files for SDXL use, to those of diffusers: as
 * `_maybe_map_sgm_blocks_to_diffusers` does, with two layers and a resize per block.
 */
function toDiffusersBlocks(name: string): string {
  const [, part, number, rest] = /^(input|middle|output)_blocks?_(\d+)_(?:1_)?(.*)$/.exec(name) ?? [];
  if (part === undefined) return name;
  const at = Number(number);
  if (part === 'middle') return `mid_block_attentions_0_${rest}`;
  const [side, index] = part === 'input' ? ['down', at - 1] : ['up', at];
  return `${side}_blocks_${Math.floor(index / 3)}_attentions_${index % 3}_${rest}`;
}
