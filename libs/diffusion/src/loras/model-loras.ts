import { createHash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { modelFileError } from '../model/model-file.ts';
import { readGraphFile } from '../onnx/check-onnx-file.ts';
import { readFully } from '../onnx/protobuf-file.ts';
import { type LoraFile, loraEnding, lorasFolder, readLoraFile } from './lora-file.ts';
import { type LoraLayer, loraLayersOf } from './lora-layers.ts';

/** The adapters of a model. */
export interface ModelLoras {
  /** The graph of the denoiser that takes them, absolute; undefined where there is none. */
  readonly graph: string | undefined;
  readonly layers: readonly LoraLayer[];
  /** By id, those that fit. */
  readonly files: ReadonlyMap<string, LoraFile>;
  /** Why others do not, each beginning with its file. */
  readonly problems: readonly string[];
}

/** All that adapters are loaded from, relative to the model's directory; nothing where there are none. */
export function filesOfLoras(directory: string, { graph, files }: ModelLoras): string[] {
  if (graph === undefined || files.size === 0) return [];
  return [relative(directory, graph), ...[...files.values()].map(({ source }) => relative(directory, source.path))];
}

/** unet/model_int8.onnx takes none, unet/model_int8.loras.onnx beside it does. */
export function lorasGraphOf(denoiser: string): string {
  return denoiser.replace(/\.onnx$/, '.loras.onnx');
}

/**
 * Reads the headers of a model's adapters. A file that does not fit is a problem of its own: the model is served without it.
 *
 * @param directory the model's, absolute.
 * @param denoiser its graph, absolute.
 */
export function readModelLoras(directory: string, denoiser: string): ModelLoras {
  const graph = lorasGraphOf(denoiser);
  const names = listFiles(directory);
  if (!existsSync(graph)) {
    const lack = `${relative(directory, graph)} is missing, which takes them: tools/export/loras.py makes it`;
    return withoutLoras(names.length === 0 ? [] : [`${lorasFolder}: ${lack}`]);
  }
  const problems: string[] = [];
  const layers = unlessRefused(problems, () => readLayers(directory, { graph, denoiser }));
  if (layers === undefined) return withoutLoras(problems);
  const files = names.flatMap(
    (name) => unlessRefused(problems, () => readLoraFile(directory, `${lorasFolder}/${name}`, layers)) ?? [],
  );
  return { graph, layers, files: new Map(files.map((file) => [file.id, file])), problems };
}

function withoutLoras(problems: readonly string[]): ModelLoras {
  return { graph: undefined, layers: [], files: new Map(), problems };
}

/** What is read, or undefined and a problem more. */
function unlessRefused<Read>(problems: string[], read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    problems.push(error.message);
    return undefined;
  }
}

function readLayers(directory: string, { graph, denoiser }: { graph: string; denoiser: string }): LoraLayer[] {
  const file = relative(directory, graph);
  const { inputs, metadata } = readGraphFile(directory, file);
  if (metadata.get('darkroom.source') === digestOf(denoiser)) return loraLayersOf(inputs);
  throw modelFileError(file, `was made of another ${basename(denoiser)}: tools/export/loras.py makes it anew`);
}

const sampleBytes = 65_536;

/**
 * As tools/export/export_model/loras.py has it: of the size, and of 64 KB each of the beginning, middle and end. The graph's weights are
 * bytes of this file, and those of another at the same places would be another model, or none.
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
    .filter((name) => name.endsWith(loraEnding))
    .toSorted();
}
