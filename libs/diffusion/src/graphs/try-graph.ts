import type { FloatTensor } from '@darkroom/runtime';
import { namingFile } from './load-graph.ts';
import { modelFileError } from '../model/model-file.ts';

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
