import { relative } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { type FloatTensor, loadOnnxSession, type LoadOnnxSessionOptions } from '@darkroom/runtime';
import type { LoadedSession, OnnxSession } from '@darkroom/runtime';
import { modelFileError } from '../model/model-file.ts';
import { checkOnnxFile } from '../onnx/check-onnx-file.ts';
import type { OnnxFile } from '../onnx/read-onnx-file.ts';

/** A loaded graph, and the name of its file for messages. */
export interface LoadedGraph<Session extends OnnxSession = OnnxSession> {
  /** Relative to the model's directory. */
  readonly file: string;
  readonly session: Session;
}

export type LoadGraphOptions = Omit<LoadOnnxSessionOptions, 'file'> & {
  rewrite?: (graph: OnnxFile, file: string) => Uint8Array | undefined;
};

/**
 * Loads one graph of a model. Its files are checked first, because ONNX Runtime names none of those it fails on.
 *
 * @param graph absolute, in the model's directory.
 * @param rewrite gives the bytes of a graph to load in its place, or undefined.
 * @throws DarkroomError naming the file: `model_unsupported` if it is not whole, else `engine_failed` or
 * `out_of_memory`, whose cause has ONNX Runtime's own words.
 */
export async function loadGraph(
  { path }: { path: string },
  graph: string,
  { rewrite, ...options }: LoadGraphOptions,
): Promise<LoadedGraph<LoadedSession>> {
  const file = relative(path, graph);
  const whole = checkOnnxFile(path, file);
  const rewritten = rewrite?.(whole, file);
  try {
    return { file, session: await loadOnnxSession({ file: rewritten ?? graph, ...options }) };
  } catch (error) {
    throw namingFile(file, error);
  }
}

/** The same error, its message beginning with the file that it is about. */
function namingFile(file: string, error: unknown): unknown {
  if (!DarkroomError.isInstance(error)) return error;
  const { code, op, message, cause } = error;
  return new DarkroomError(code, op, `${file}: ${message}`, cause);
}

/** One call of a graph as its pipeline will call it, at the smallest size. */
export interface TryGraphOptions {
  /** For messages: relative to the model's directory. */
  file: string;
  run: () => Promise<FloatTensor>;
  /** What is fed, in words. */
  takes: string;
  /** Dimensions that the other files of the model promise. */
  gives: readonly number[];
}

/**
 * Calls a graph once while its model is loaded: one that was exported from another model, or whose configuration is
 * another's, is found now and not by the first request. (Exports leave most dimensions open, so that they do not tell.)
 *
 * @throws DarkroomError naming the file: `model_unsupported` if the graph does not fit, or `out_of_memory`.
 */
export async function tryGraph({ file, run, takes, gives }: TryGraphOptions): Promise<FloatTensor> {
  const result = await run().catch((error: Error & { code?: string }) => {
    if (error.code === 'out_of_memory') throw namingFile(file, error);
    throw modelFileError(file, `does not take ${takes}, as the other files of the model say it does`, error.cause);
  });
  if (result.dims.length === gives.length && result.dims.every((side, at) => side === gives[at])) return result;
  const given = `gives [${result.dims.join(', ')}] for ${takes}`;
  throw modelFileError(file, `${given}; [${gives.join(', ')}] is what the other files of the model say`);
}
