import { valueOfKey } from '@darkroom/core';
import { statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { ModelDirectory } from './model-directory.ts';
import { checkOnnxFile, type CompleteOnnxFile } from '../onnx/check-onnx-file.ts';
import { dtypeOfWeights } from '../onnx/dtype-of-weights.ts';

/** ONNX's type number of int64: shapes and axes have it, weights never do. */
const int64 = 7;

/** A description of one graph. */
export interface GraphDescription {
  /** Its folder, such as `unet`. */
  readonly part: string;
  /** Relative to the model's directory: the graph, then its weight files. */
  readonly files: readonly string[];
  /**
   * `fp32`, `fp16`, `int8`, `bf16` or `int4`, read from the weights and not from the file name; `unknown` without
   * weights.
   */
  readonly dtype: string;
  /** Number of weights, including one scale per channel for INT8. */
  readonly parameters: number;
  readonly bytes: number;
}

/** A description of a model, read from its files. */
export interface ModelDescription {
  readonly graphs: readonly GraphDescription[];
  /**
   * True if rows at different steps may share a call of the denoiser. If not, a step costs one call per distinct
   * timestep.
   */
  readonly hasTimestepPerRow: boolean;
}

/**
 * Describes a model by its graph files, without reading the weights.
 *
 * @throws DarkroomError `model_unsupported` naming a file that is not complete.
 */
export function describeModel({ path, graphs }: ModelDirectory): ModelDescription {
  const files = Object.values(graphs)
    .flat()
    .map((graph: string) => relative(path, graph));
  const described = new Map(files.map((file) => [file, checkOnnxFile(path, file)]));
  const denoiser = valueOfKey(described, relative(path, graphs.denoiser));
  return {
    graphs: Array.from(described, ([file, graph]) => describeGraph(path, file, graph)),
    hasTimestepPerRow: hasTimestepPerRow(denoiser),
  };
}

/**
 * Describes one graph in a model's directory, for any kind of model.
 *
 * @param file relative to the directory.
 * @throws DarkroomError `model_unsupported` if it is not complete.
 */
export function describeGraphFile(path: string, file: string): GraphDescription {
  return describeGraph(path, file, checkOnnxFile(path, file));
}

function describeGraph(path: string, file: string, { tensors, externalFiles }: CompleteOnnxFile): GraphDescription {
  const files = [file, ...externalFiles];
  const sizes = tensors.filter(({ dataType }) => dataType !== int64).map(({ count }) => count);
  return {
    part: dirname(file),
    files,
    dtype: dtypeOfWeights(tensors) ?? 'unknown',
    parameters: sizes.reduce(add, 0),
    bytes: files.map((name) => statSync(join(path, name)).size).reduce(add, 0),
  };
}

function hasTimestepPerRow({ inputs }: CompleteOnnxFile): boolean {
  const shape = inputs.find(({ name }) => name === 'timestep')?.shape ?? [];
  return shape.length > 0 && typeof shape[0] !== 'number';
}

function add(left: number, right: number): number {
  return left + right;
}
