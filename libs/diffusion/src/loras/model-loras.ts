import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { readGraphFile } from '../onnx/check-onnx-file.ts';
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
 * @throws DarkroomError `model_unsupported` if the graph that takes adapters is not whole.
 */
export function readModelLoras(directory: string, denoiser: string): ModelLoras {
  const graph = lorasGraphOf(denoiser);
  const names = listFiles(directory);
  if (!existsSync(graph)) {
    const lack = `${relative(directory, graph)} is missing, which takes them: tools/export/loras.py makes it`;
    const problems = names.length === 0 ? [] : [`${lorasFolder}: ${lack}`];
    return { graph: undefined, layers: [], files: new Map(), problems };
  }
  const layers = loraLayersOf(readGraphFile(directory, relative(directory, graph)).inputs);
  const files = new Map<string, LoraFile>();
  const problems: string[] = [];
  for (const name of names) {
    try {
      const file = readLoraFile(directory, `${lorasFolder}/${name}`, layers);
      files.set(file.id, file);
    } catch (error) {
      if (!DarkroomError.isInstance(error)) throw error;
      problems.push(error.message);
    }
  }
  return { graph, layers, files, problems };
}

function listFiles(directory: string): string[] {
  const folder = join(directory, lorasFolder);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(loraEnding))
    .toSorted();
}
