import { itemAt } from '@darkroom/core';
import { basename, join } from 'node:path';
import { maxLoraRank } from '@darkroom/kinds';
import { z } from 'zod';
import { modelFileError } from '@darkroom/runtime/model-file';
import { loraId } from './lora-id.ts';
import { type LoraLayer, LoraLayerNames, type LoraRole, readLoraName, readTextEncoderLayer } from './lora-layers.ts';
import { isReadable, readSafetensors, SafetensorsError } from './read-safetensors.ts';
import type { SafetensorsFile, SafetensorsTensor } from './read-safetensors.ts';

/** An adapter's addition to a layer: up · down, times alpha / rank. */
export interface LoraChange {
  readonly layer: LoraLayer;
  /** [rank, inputs] */
  readonly down: SafetensorsTensor;
  /** [outputs, rank] */
  readonly up: SafetensorsTensor;
  readonly rank: number;
  /** A number in the file or its metadata; the rank if there is neither. */
  readonly alpha: SafetensorsTensor | number;
}

/** An adapter file whose header has been checked against the model. */
export interface LoraFile {
  /** The id that requests name: see {@link loraId}. */
  readonly id: string;
  /** The file's name without its extension. */
  readonly name: string;
  /** The highest rank of its layers. */
  readonly rank: number;
  readonly source: SafetensorsFile;
  /** Changes to the denoiser. */
  readonly changes: readonly LoraChange[];
  /** Changes to each text encoder. */
  readonly encoderChanges: readonly (readonly LoraChange[])[];
  /** Text encoders that the file changes but whose graphs take no adapters; these changes are not applied. */
  readonly leftOut: readonly string[];
}

/** The layers of a model that take adapters. */
export interface LoraModelLayers {
  readonly denoiser: readonly LoraLayer[];
  /** Undefined for a text encoder without a graph that takes adapters. */
  readonly encoders: readonly (readonly LoraLayer[] | undefined)[];
}

/** The folder of a model's adapters, relative to its directory. */
export const lorasFolder = 'loras';
export const loraEnding = '.safetensors';

type Tensors = Partial<Record<LoraRole, { name: string; tensor: SafetensorsTensor }>>;

/**
 * Reads the header of an adapter file written by diffusers, PEFT or kohya.
 *
 * @param file relative to the model's directory.
 * @param layers the model's layers that take adapters.
 * @throws DarkroomError `model_unsupported` naming file and tensor, with the value found and the one expected.
 */
export function readLoraFile(directory: string, file: string, layers: LoraModelLayers): LoraFile {
  const source = readHeader(directory, file);
  const { denoiser, encoders } = tensorsByPart(file, source, layers.encoders.length);
  const changesOf = (tensors: PartTensors, known: readonly LoraLayer[], components: readonly string[]) => {
    const alphas = alphasOf(file, source, components);
    return [...tensorsOfLayers(file, tensors, known)].map(([layer, found]) => checkChange(file, layer, found, alphas));
  };
  const changes = changesOf(denoiser, layers.denoiser, ['unet', 'transformer']);
  const encoderChanges = encoders.map((tensors, at) => {
    const known = layers.encoders[at];
    return known === undefined ? [] : changesOf(tensors, known, [textEncoderFolder(at)]);
  });
  const leftOut = encoders.flatMap((tensors, at) =>
    tensors.size > 0 && layers.encoders[at] === undefined ? [textEncoderFolder(at)] : [],
  );
  const all = [changes, ...encoderChanges].flat();
  if (all.length === 0 && leftOut.length > 0) {
    const lack = `${leftOut.join(' and ')}, which has no graph that takes them: tools/export/loras.py makes it`;
    throw modelFileError(file, `changes nothing but ${lack}`);
  }
  if (all.length === 0) throw modelFileError(file, 'has no tensors');
  const rank = Math.max(...all.map((change) => change.rank));
  if (rank > maxLoraRank) throw modelFileError(file, `has rank ${rank}, expected at most ${maxLoraRank}`);
  const name = loraName(file);
  return { id: loraId(name), name, rank, source, changes, encoderChanges, leftOut };
}

/** Returns the file name without folder and extension; the extension may be in upper case. */
function loraName(file: string): string {
  return basename(file).slice(0, -loraEnding.length);
}

/** Returns the folder of a text encoder in diffusers' layout: `text_encoder`, `text_encoder_2`. */
function textEncoderFolder(at: number): string {
  return at === 0 ? 'text_encoder' : `text_encoder_${at + 1}`;
}

function readHeader(directory: string, file: string): SafetensorsFile {
  try {
    return readSafetensors(join(directory, file));
  } catch (error) {
    if (error instanceof SafetensorsError) throw modelFileError(file, error.message, error);
    throw modelFileError(file, 'could not be read', error);
  }
}

/** Tensors by their names in the file. `layer` is the name without the prefix of the denoiser or encoder. */
type PartTensors = ReadonlyMap<string, { layer: string; role: LoraRole; tensor: SafetensorsTensor }>;

/** Separates the tensors of the denoiser from those of each text encoder. */
function tensorsByPart(
  file: string,
  { tensors }: SafetensorsFile,
  encoderCount: number,
): { denoiser: PartTensors; encoders: readonly PartTensors[] } {
  const denoiser = new Map<string, { layer: string; role: LoraRole; tensor: SafetensorsTensor }>();
  const encoders = Array.from({ length: encoderCount }, () => new Map(denoiser));
  for (const [name, tensor] of tensors) {
    const read = readLoraName(name);
    const expected = 'lora_A and lora_B, or lora_down, lora_up and alpha';
    if (read === undefined) throw modelFileError(file, `has the tensor ${name}, expected of each layer ${expected}`);
    const ofEncoder = readTextEncoderLayer(read.layer);
    if (ofEncoder === undefined) {
      denoiser.set(name, { layer: read.layer, role: read.role, tensor });
      continue;
    }
    const encoder = encoders[ofEncoder.at];
    if (encoder === undefined)
      throw modelFileError(file, `${name}: changes ${textEncoderFolder(ofEncoder.at)}, which the model does not have`);
    encoder.set(name, { layer: ofEncoder.layer, role: read.role, tensor });
  }
  return { denoiser, encoders };
}

/** Groups the tensors by layer. */
function tensorsOfLayers(file: string, tensors: PartTensors, layers: readonly LoraLayer[]): Map<LoraLayer, Tensors> {
  const names = new LoraLayerNames(layers);
  const found = new Map<LoraLayer, Tensors>();
  for (const [name, { layer: layerName, role, tensor }] of tensors) {
    const layer = names.find(layerName);
    if (layer === undefined) {
      const expected = `one of the model's ${layers.length} layers that take adapters, such as ${itemAt(layers, 0).name}`;
      throw modelFileError(file, `${name}: is for another model or layer, expected ${expected}`);
    }
    if (!isReadable(tensor.dtype))
      throw modelFileError(file, `${name}: has numbers of ${tensor.dtype}, expected F32, F16 or BF16`);
    const others = found.get(layer) ?? {};
    if (others[role] !== undefined) throw modelFileError(file, `${name}: is there twice, under two names`);
    found.set(layer, { ...others, [role]: { name, tensor } });
  }
  return found;
}

function checkChange(file: string, layer: LoraLayer, tensors: Tensors, alphas: Alphas): LoraChange {
  const { down, up, alpha } = tensors;
  if (down === undefined || up === undefined) {
    throw modelFileError(
      file,
      `${(down ?? up ?? alpha)?.name}: its layer lacks ${down === undefined ? 'lora_A (lora_down)' : 'lora_B (lora_up)'}`,
    );
  }
  const rank = down.tensor.shape[0] ?? 0;
  checkShape(file, down, [Math.max(rank, 1), layer.inputs]);
  checkShape(file, up, [layer.outputs, rank]);
  if (alpha !== undefined && alpha.tensor.shape.some((side) => side !== 1)) checkShape(file, alpha, []);
  return { layer, down: down.tensor, up: up.tensor, rank, alpha: alpha?.tensor ?? alphas(layer) ?? rank };
}

/** Checks a tensor's shape. 1 × 1 convolutions may have two more sides of 1. */
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

/** PEFT's configuration. diffusers writes it into the metadata, each field prefixed with the component's name. */
const adapterSchema = z.record(z.string(), z.unknown());
const alphaSchema = z.number().optional();
const patternSchema = z.record(z.string(), z.number()).default({});

/** Returns a lookup of the layers' alphas. `rank_pattern` is not read: the tensors' shapes give the ranks. */
function alphasOf(file: string, { metadata }: SafetensorsFile, components: readonly string[]): Alphas {
  const key = 'lora_adapter_metadata';
  if (metadata[key] === undefined) return () => undefined;
  try {
    const fields = adapterSchema.parse(parseJson(metadata[key]));
    for (const other of ['use_dora', 'use_rslora']) {
      if (Object.entries(fields).some(([name, value]) => name.endsWith(`.${other}`) && value === true))
        throw modelFileError(file, `${key}: ${other} is true, expected false`);
    }
    const prefix = components.find((component) => Object.keys(fields).some((name) => name.startsWith(`${component}.`)));
    const alpha = alphaSchema.parse(fields[`${prefix}.lora_alpha`]);
    const patterns = Object.entries(patternSchema.parse(fields[`${prefix}.alpha_pattern`]));
    return ({ name }) =>
      patterns.find(
        ([pattern]) => name === pattern || name.endsWith(`.${pattern}`) || pattern.endsWith(`.${name}`),
      )?.[1] ?? alpha;
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    throw modelFileError(file, `its metadata's ${key} is not what PEFT writes`, error);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
