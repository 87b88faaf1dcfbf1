import { createHash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { DarkroomError, type RefusedFile } from '@darkroom/core';
import { modelFileError } from '@darkroom/runtime/model-file';
import { readGraphFile } from '../onnx/check-onnx-file.ts';
import { readFully } from '../onnx/protobuf-file.ts';
import { type LoraFile, loraEnding, lorasFolder, readLoraFile } from './lora-file.ts';
import { type LoraLayer, loraLayersOf } from './lora-layers.ts';

/** A graph that takes adapters. */
export interface LoraGraph {
  /** Absolute path. */
  readonly path: string;
  readonly layers: readonly LoraLayer[];
}

/** The adapters of a model. */
export interface ModelLoras {
  /** The denoiser's graph for adapters; undefined if there is none. */
  readonly denoiser: LoraGraph | undefined;
  /** Each text encoder's graph for adapters; undefined if it has none. */
  readonly encoders: readonly (LoraGraph | undefined)[];
  /** Usable adapters, by id. */
  readonly files: ReadonlyMap<string, LoraFile>;
  /** Adapters that do not fit the model. */
  readonly refused: readonly RefusedFile[];
}

/** Returns the files of a model's adapters, relative to its directory; empty if it has no adapters. */
export function filesOfLoras(directory: string, { denoiser, encoders, files }: ModelLoras): string[] {
  if (files.size === 0) return [];
  const graphs = [denoiser, ...encoders].flatMap((graph) => graph?.path ?? []);
  return [...graphs, ...[...files.values()].map(({ source }) => source.path)].map((path) => relative(directory, path));
}

/** Returns the path of the graph that takes adapters: unet/model_int8.loras.onnx for unet/model_int8.onnx. */
export function lorasGraphOf(denoiser: string): string {
  return denoiser.replace(/\.onnx$/, '.loras.onnx');
}

/**
 * Reads the headers of a model's adapters. A file that does not fit is refused with a reason, and the model is served
 * without it.
 *
 * @param directory the model's directory, absolute.
 * @param graphs its graphs, absolute paths.
 */
export function readModelLoras(
  directory: string,
  graphs: { denoiser: string; textEncoders: readonly string[] },
): ModelLoras {
  const refused: RefusedFile[] = [];
  const names = listFiles(directory);
  const encoders = graphs.textEncoders.map((graph) => readGraph(directory, graph, refused));
  const denoiser = readGraph(directory, graphs.denoiser, refused);
  if (denoiser === undefined) {
    const file = relative(directory, lorasGraphOf(graphs.denoiser));
    if (names.length > 0 && refused.every((other) => other.file !== file))
      refused.push({ file, reason: 'is missing; it takes the adapters: create it with tools/export/loras.py' });
    return { denoiser, encoders, files: new Map(), refused };
  }
  const layers = { denoiser: denoiser.layers, encoders: encoders.map((graph) => graph?.layers) };
  const files = new Map<string, LoraFile>();
  for (const name of names) {
    const path = `${lorasFolder}/${name}`;
    const file = readOrRefuse(refused, path, () => readLoraFile(directory, path, layers));
    if (file === undefined) continue;
    const other = files.get(file.id);
    if (other === undefined) files.set(file.id, file);
    else
      refused.push({ file: path, reason: `has the same id ${file.id} as ${basename(other.source.path)}: rename one` });
  }
  return { denoiser, encoders, files, refused };
}

/** Returns the result of `read`; if it throws a DarkroomError, adds the file to `refused` and returns undefined. */
function readOrRefuse<Read>(refused: RefusedFile[], file: string, read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    const { message } = error;
    refused.push({ file, reason: message.startsWith(`${file}: `) ? message.slice(file.length + 2) : message });
    return undefined;
  }
}

/** Returns the graph beside `plain` that takes adapters; undefined if there is none or it does not fit. */
function readGraph(directory: string, plain: string, refused: RefusedFile[]): LoraGraph | undefined {
  const path = lorasGraphOf(plain);
  if (!existsSync(path)) return undefined;
  const file = relative(directory, path);
  return readOrRefuse(refused, file, () => {
    const { inputs, metadata } = readGraphFile(directory, file);
    if (metadata.get('darkroom.source') === digestOf(plain)) return { path, layers: loraLayersOf(inputs) };
    throw modelFileError(file, `was made from another ${basename(plain)}: run tools/export/loras.py again`);
  });
}

const sampleBytes = 65_536;

/**
 * Hashes the size and 64 KB each from beginning, middle and end, as tools/export/export_model/loras.py does. The
 * adapter graph refers to weights by offset in this file; in another file, other bytes would be at these offsets.
 */
function digestOf(path: string): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const digest = createHash('sha256').update(String(size));
    for (const start of [0, Math.floor(size / 2), Math.max(0, size - sampleBytes)]) {
      const sample = new Uint8Array(Math.min(sampleBytes, size - start));
      readFully(file, sample, start);
      digest.update(sample);
    }
    return digest.digest('hex');
  } finally {
    closeSync(file);
  }
}

function listFiles(directory: string): string[] {
  const folder = join(directory, lorasFolder);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.toLowerCase().endsWith(loraEnding))
    .toSorted();
}
