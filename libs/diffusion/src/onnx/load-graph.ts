import { relative } from 'node:path';
import { type FloatTensor, loadOnnxSession, type LoadOnnxSessionOptions } from '@darkroom/runtime';
import type { LoadedSession, OnnxSession } from '@darkroom/runtime';
import { modelFileError, withFileName } from '@darkroom/runtime/model-file';
import { checkOnnxFile } from './check-onnx-file.ts';
import type { OnnxFile } from './read-onnx-file.ts';

/** A loaded graph and its file name, for error messages. */
export interface LoadedGraph<Session extends OnnxSession = OnnxSession> {
  /** Relative to the model's directory. */
  readonly file: string;
  readonly session: Session;
}

export type LoadGraphOptions = Omit<LoadOnnxSessionOptions, 'file'> & {
  rewrite?: (graph: OnnxFile, file: string) => Uint8Array | undefined;
};

/**
 * Loads one graph of a model. Checks its files first, because ONNX Runtime's errors do not name the file.
 *
 * @param graph absolute path, in the model's directory.
 * @param rewrite returns bytes of a graph to load instead, or undefined.
 * @throws DarkroomError naming the file: `model_unsupported` if it is not complete, else `engine_failed` or
 * `out_of_memory` with ONNX Runtime's message in the cause.
 */
export async function loadGraph(
  { path }: { path: string },
  graph: string,
  { rewrite, ...options }: LoadGraphOptions,
): Promise<LoadedGraph<LoadedSession>> {
  const file = relative(path, graph);
  const checked = checkOnnxFile(path, file);
  const rewritten = rewrite?.(checked, file);
  return { file, session: await withFileName(file, loadOnnxSession({ file: rewritten ?? graph, ...options })) };
}

/** A trial call of a graph, as its pipeline will call it, at the smallest size. */
export interface TryGraphOptions {
  /** Relative to the model's directory, for error messages. */
  file: string;
  run: () => Promise<FloatTensor>;
  /** Describes the inputs, for error messages. */
  inputs: string;
  /** Output dimensions that the model's other files require. */
  outputDims: readonly number[];
}

/**
 * Calls a graph once while its model is loaded, so that a graph exported from another model, or with another model's
 * configuration, fails now and not on the first request. Exports leave most dimensions open, so the graph's shapes do
 * not show it.
 *
 * @throws DarkroomError naming the file: `model_unsupported` if the graph does not fit, or `out_of_memory`.
 */
export async function tryGraph({ file, run, inputs, outputDims }: TryGraphOptions): Promise<FloatTensor> {
  const result = await withFileName(file, run()).catch((error: Error & { code?: string }) => {
    if (error.code === 'out_of_memory') throw error;
    throw modelFileError(file, `does not accept ${inputs}, which the other model files require`, error.cause);
  });
  if (result.dims.length === outputDims.length && result.dims.every((side, at) => side === outputDims[at]))
    return result;
  const actual = `returns [${result.dims.join(', ')}] for ${inputs}`;
  throw modelFileError(file, `${actual}, expected [${outputDims.join(', ')}] by the other model files`);
}
