import { basename, join } from 'node:path';
import { maxLoraRank } from '@darkroom/kinds';
import { z } from 'zod';
import { modelFileError } from '../model/model-file.ts';
import { isOfTextEncoder, type LoraLayer, LoraLayerNames, type LoraRole, readLoraName } from './lora-layers.ts';
import { isReadable, readSafetensors, SafetensorsError } from './read-safetensors.ts';
import type { SafetensorsFile, SafetensorsTensor } from './read-safetensors.ts';

/** What an adapter adds to a layer: up · down, times alpha / rank. */
export interface LoraChange {
  readonly layer: LoraLayer;
  /** [rank, inputs] */
  readonly down: SafetensorsTensor;
  /** [outputs, rank] */
  readonly up: SafetensorsTensor;
  readonly rank: number;
  /** A number in the file, or of its metadata; the rank if there is none. */
  readonly alpha: SafetensorsTensor | number;
}

/** A file whose header was checked against the model. */
export interface LoraFile {
  /** What requests call it: the file's name without its ending. */
  readonly id: string;
  /** The highest of its layers. */
  readonly rank: number;
  readonly source: SafetensorsFile;
  readonly changes: readonly LoraChange[];
}

/** Where a model's adapters lie, in its directory. */
export const lorasFolder = 'loras';
export const loraEnding = '.safetensors';
/** Characters of ids: they are in URLs and keys. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

type Tensors = Partial<Record<LoraRole, { name: string; tensor: SafetensorsTensor }>>;

/**
 * Reads the header of an adapter's file, as diffusers, PEFT and kohya write them.
 *
 * @param file relative to the model's directory.
 * @param layers those of the model that take adapters.
 * @throws DarkroomError `model_unsupported` naming file and tensor, what it is, and what the model would take.
 */
export function readLoraFile(directory: string, file: string, layers: readonly LoraLayer[]): LoraFile {
  const id = basename(file, loraEnding);
  if (!idPattern.test(id))
    throw modelFileError(file, 'its name must be 1–64 characters of A–Z, a–z, 0–9, ".", "_" and "-"');
  const source = readHeader(directory, file);
  const alphas = alphasOf(file, source);
  const changes = [...tensorsOfLayers(file, source, layers)].map(([layer, tensors]) =>
    checkChange(file, layer, tensors, alphas),
  );
  if (changes.length === 0) throw modelFileError(file, 'has no tensors');
  const rank = Math.max(...changes.map((change) => change.rank));
  if (rank > maxLoraRank) throw modelFileError(file, `has rank ${rank}, expected at most ${maxLoraRank}`);
  return { id, rank, source, changes };
}

function readHeader(directory: string, file: string): SafetensorsFile {
  try {
    return readSafetensors(join(directory, file));
  } catch (error) {
    if (error instanceof SafetensorsError) throw modelFileError(file, error.message, error);
    throw modelFileError(file, 'could not be read', error);
  }
}

/** Each tensor beside the others of its layer. */
function tensorsOfLayers(
  file: string,
  { tensors }: SafetensorsFile,
  layers: readonly LoraLayer[],
): Map<LoraLayer, Tensors> {
  const names = new LoraLayerNames(layers);
  const found = new Map<LoraLayer, Tensors>();
  for (const [name, tensor] of tensors) {
    const read = readLoraName(name);
    const expected = 'lora_A and lora_B, or lora_down, lora_up and alpha';
    if (read === undefined) throw modelFileError(file, `has the tensor ${name}, expected of each layer ${expected}`);
    if (isOfTextEncoder(read.layer))
      throw modelFileError(file, `${name}: changes a text encoder, expected changes of the UNet or transformer only`);
    const layer = names.find(read.layer);
    if (layer === undefined) {
      const some = `one of the model's ${layers.length} layers that take adapters, such as ${layers[0]!.name}`;
      throw modelFileError(file, `${name}: is for another model or layer, expected ${some}`);
    }
    if (!isReadable(tensor.dtype))
      throw modelFileError(file, `${name}: has numbers of ${tensor.dtype}, expected F32, F16 or BF16`);
    const others = found.get(layer) ?? {};
    if (others[read.role] !== undefined) throw modelFileError(file, `${name}: is there twice, under two names`);
    found.set(layer, { ...others, [read.role]: { name, tensor } });
  }
  return found;
}

function checkChange(file: string, layer: LoraLayer, tensors: Tensors, alphas: Alphas): LoraChange {
  const { down, up, alpha } = tensors;
  if (down === undefined || up === undefined) {
    const { name } = (down ?? up ?? alpha)!;
    throw modelFileError(
      file,
      `${name}: its layer lacks ${down === undefined ? 'lora_A (lora_down)' : 'lora_B (lora_up)'}`,
    );
  }
  const rank = down.tensor.shape[0] ?? 0;
  checkShape(file, down, [Math.max(rank, 1), layer.inputs]);
  checkShape(file, up, [layer.outputs, rank]);
  if (alpha !== undefined && alpha.tensor.shape.some((side) => side !== 1)) checkShape(file, alpha, []);
  return { layer, down: down.tensor, up: up.tensor, rank, alpha: alpha?.tensor ?? alphas(layer) ?? rank };
}

/** A convolution of one pixel has two sides of 1 more. */
function checkShape(
  file: string,
  { name, tensor: { shape } }: { name: string; tensor: SafetensorsTensor },
  expected: readonly number[],
): void {
  const sides = shape.slice(0, expected.length);
  const isRight = sides.length === expected.length && sides.every((side, at) => side === expected[at]);
  if (isRight && shape.slice(expected.length).every((side) => side === 1)) return;
  throw modelFileError(file, `${name}: has the shape [${shape.join(', ')}], expected [${expected.join(', ')}]`);
}

type Alphas = (layer: LoraLayer) => number | undefined;

/** PEFT's configuration, which diffusers writes into the metadata. `rank_pattern` is what the tensors say themselves. */
const adapterSchema = z.looseObject({
  'unet.lora_alpha': z.number().optional(),
  'unet.alpha_pattern': z.record(z.string(), z.number()).optional(),
  'unet.use_dora': z.boolean().optional(),
  'unet.use_rslora': z.boolean().optional(),
  'transformer.lora_alpha': z.number().optional(),
  'transformer.alpha_pattern': z.record(z.string(), z.number()).optional(),
  'transformer.use_dora': z.boolean().optional(),
  'transformer.use_rslora': z.boolean().optional(),
});

function alphasOf(file: string, { metadata }: SafetensorsFile): Alphas {
  const key = 'lora_adapter_metadata';
  if (metadata[key] === undefined) return () => undefined;
  const parsed = adapterSchema.safeParse(parseJson(metadata[key]));
  if (!parsed.success) throw modelFileError(file, `its metadata's ${key} is not what PEFT writes`, parsed.error);
  const facts = parsed.data;
  for (const other of ['use_dora', 'use_rslora'] as const) {
    if (facts[`unet.${other}`] === true || facts[`transformer.${other}`] === true)
      throw modelFileError(file, `${key}: ${other} is true, expected false`);
  }
  const patterns = Object.entries(facts['unet.alpha_pattern'] ?? facts['transformer.alpha_pattern'] ?? {});
  return ({ name }) =>
    patterns.find(([pattern]) => name === pattern || name.endsWith(`.${pattern}`))?.[1] ??
    facts['unet.lora_alpha'] ??
    facts['transformer.lora_alpha'];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
