/** The adapters of a request, in the layout of the graph's inputs. */
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { DarkroomError, itemAt, numberAt } from '@darkroom/core';
import { floatsOfHalves } from '@darkroom/runtime';
import { readFully } from '../onnx/protobuf-file.ts';
import type { LoraChange, LoraFile } from './lora-file.ts';
import { loraBlock } from './lora-layers.ts';
import type { SafetensorsTensor } from './read-safetensors.ts';

/** The changes that a request's adapters make to one graph. Shared between rows: read only. */
export interface LoraSet {
  /** Equal for the same adapters with the same scales. */
  readonly key: string;
  readonly blocks: number;
  /**
   * By layer: A as [blocks, inputs, 16], B as [16 · blocks, outputs], including scale and alpha; zeros above the rank.
   */
  readonly layers: ReadonlyMap<string, { readonly a: Float32Array; readonly b: Float32Array }>;
}

export interface ChosenLora {
  readonly file: LoraFile;
  readonly scale: number;
}

export function loraSetKey(chosen: readonly { readonly id: string; readonly scale: number }[]): string {
  return chosen.map(({ id, scale }) => `${id}:${scale}`).join(' ');
}

/**
 * Reads the changes that adapters make to one graph and concatenates them along the rank.
 *
 * @param changesOf selects the changes to the graph.
 * @returns undefined if no adapter changes the graph.
 * @throws DarkroomError `engine_failed` naming a file that changed after the model was loaded, or has values that are
 * not finite.
 */
export function readLoraSet(
  adapters: readonly ChosenLora[],
  changesOf: (file: LoraFile) => readonly LoraChange[],
): LoraSet | undefined {
  const chosen = adapters.filter(({ file }) => changesOf(file).length > 0);
  if (chosen.length === 0) return undefined;
  const ranks = new Map<string, number>();
  for (const { file } of chosen)
    for (const { layer, rank } of changesOf(file)) ranks.set(layer.name, (ranks.get(layer.name) ?? 0) + rank);
  const blocks = Math.ceil(Math.max(...ranks.values()) / loraBlock);
  const layers = new Map<string, { a: Float32Array; b: Float32Array }>();
  const filled = new Map<string, number>();
  for (const { file, scale } of chosen) {
    const values = readValues(file);
    for (const change of changesOf(file)) {
      const { layer, rank } = change;
      const width = blocks * loraBlock;
      const target = layers.get(layer.name) ?? {
        a: new Float32Array(width * layer.inputs),
        b: new Float32Array(width * layer.outputs),
      };
      layers.set(layer.name, target);
      const start = filled.get(layer.name) ?? 0;
      writeChange(target, change, { start, scale, ...values(change) });
      filled.set(layer.name, start + rank);
    }
  }
  return { key: loraSetKey(chosen.map(({ file, scale }) => ({ id: file.id, scale }))), blocks, layers };
}

interface Values {
  down: Float32Array;
  up: Float32Array;
  alpha: number;
}

function writeChange(
  { a, b }: { a: Float32Array; b: Float32Array },
  { layer: { inputs, outputs }, rank }: LoraChange,
  { start, scale, down, up, alpha }: Values & { start: number; scale: number },
): void {
  // As PEFT does: one factor in double precision, applied to B and rounded with the product.
  const factor = (scale * alpha) / rank;
  for (let from = 0; from < rank; from++) {
    const to = start + from;
    const column = Math.floor(to / loraBlock) * inputs * loraBlock + (to % loraBlock);
    for (let input = 0; input < inputs; input++) a[column + input * loraBlock] = numberAt(down, from * inputs + input);
    for (let output = 0; output < outputs; output++)
      b[to * outputs + output] = numberAt(up, output * rank + from) * factor;
  }
}

/** Reads the values of a layer when it is needed, so that only one layer's are in memory. */
function readValues({ source }: LoraFile): (change: LoraChange) => Values {
  const read = (tensor: SafetensorsTensor): Float32Array => {
    const values = readTensor(source.path, tensor);
    if (values.every((value) => Number.isFinite(value))) return values;
    throw fileError(source.path, 'has values that are not finite');
  };
  return ({ down, up, alpha }) => ({
    down: read(down),
    up: read(up),
    alpha: typeof alpha === 'number' ? alpha : itemAt(read(alpha), 0),
  });
}

function readTensor(path: string, { dtype, start, end }: SafetensorsTensor): Float32Array {
  const bytes = new Uint8Array(end - start);
  try {
    const file = openSync(path, 'r');
    try {
      readFully(file, bytes, start);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw fileError(path, 'could not be read', error);
  }
  if (dtype === 'F32') return new Float32Array(bytes.buffer);
  const halves = new Uint16Array(bytes.buffer);
  if (dtype === 'F16') return floatsOfHalves(halves);
  // BF16 is the upper half of a float32.
  return new Float32Array(Uint32Array.from(halves, (half) => half * 2 ** 16).buffer);
}

function fileError(path: string, problem: string, cause?: unknown): DarkroomError {
  return new DarkroomError('engine_failed', 'diffusion.read-loras', `loras/${basename(path)} ${problem}`, cause);
}
