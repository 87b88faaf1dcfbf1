import { relative } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { loadOnnxSession, type LoadOnnxSessionOptions, type OnnxSession } from '@darkroom/runtime';
import { checkOnnxFile } from '../onnx/check-onnx-file.ts';

/** A loaded graph, and the name of its file for messages. */
export interface LoadedGraph {
  /** Relative to the model's directory. */
  readonly file: string;
  readonly session: OnnxSession;
}

/**
 * Loads one graph of a model. Its files are checked first, because ONNX Runtime names none of those it fails on.
 *
 * @param graph absolute, in the model's directory.
 * @throws DarkroomError naming the file: `model_unsupported` if it is not whole, else `engine_failed` or
 * `out_of_memory`, whose cause has ONNX Runtime's own words.
 */
export async function loadGraph(
  { path }: { path: string },
  graph: string,
  options: Omit<LoadOnnxSessionOptions, 'file'>,
): Promise<LoadedGraph> {
  const file = relative(path, graph);
  checkOnnxFile(path, file);
  try {
    return { file, session: await loadOnnxSession({ file: graph, ...options }) };
  } catch (error) {
    throw namingFile(file, error);
  }
}

/** The same error, its message beginning with the file that it is about. */
export function namingFile(file: string, error: unknown): unknown {
  if (!DarkroomError.isInstance(error)) return error;
  const { code, op, message, cause } = error;
  return new DarkroomError({ code, op, message: `${file}: ${message}`, cause });
}
