import { statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { ModelDirectory } from './model-directory.ts';
import { checkOnnxFile, type WholeOnnxFile } from '../onnx/check-onnx-file.ts';
import { dtypeOfWeights } from '../onnx/dtype-of-weights.ts';

/** ONNX's number of int64, the type of shapes and axes and never of weights. */
const int64 = 7;

/** One graph of a model. */
export interface GraphDescription {
  /** Its folder, such as `unet`. */
  readonly part: string;
  /** Relative to the model's directory: the graph, then the files with its weights. */
  readonly files: readonly string[];
  /** `fp32`, `fp16`, `int8`, `bf16` or `int4`, by the weights and not by the name of the file; `unknown` without any. */
  readonly dtype: string;
  /** Numbers among its weights; those of INT8 include one scale for each channel. */
  readonly parameters: number;
  readonly bytes: number;
}

/** What a model's files say of it. */
export interface ModelDescription {
  readonly graphs: readonly GraphDescription[];
  /** Whether rows at different steps may share a call of the denoiser. If not, each step costs a call for each timestep. */
  readonly hasTimestepPerRow: boolean;
}

/**
 * Describes a model by its graphs' files, whose weights are not read.
 *
 * @throws DarkroomError `model_unsupported` naming a file that is not whole.
 */
export function describeModel({ path, graphs }: ModelDirectory): ModelDescription {
  const described = Object.values(graphs)
    .flat()
    .map((graph: string) => {
      const file = relative(path, graph);
      return { file, graph: checkOnnxFile(path, file) };
    });
  const denoiser = described.find(({ file }) => file === relative(path, graphs.denoiser))!;
  return {
    graphs: described.map(({ file, graph }) => describeGraph(path, file, graph)),
    hasTimestepPerRow: hasTimestepPerRow(denoiser.graph),
  };
}

/**
 * Describes one graph of a directory, of any kind of model.
 *
 * @param file relative to the directory.
 * @throws DarkroomError `model_unsupported` if it is not whole.
 */
export function describeGraphFile(path: string, file: string): GraphDescription {
  return describeGraph(path, file, checkOnnxFile(path, file));
}

function describeGraph(path: string, file: string, { tensors, externalFiles }: WholeOnnxFile): GraphDescription {
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

function hasTimestepPerRow({ inputs }: WholeOnnxFile): boolean {
  const shape = inputs.find(({ name }) => name === 'timestep')?.shape ?? [];
  return shape.length > 0 && typeof shape[0] !== 'number';
}

function add(left: number, right: number): number {
  return left + right;
}
