import { describeModel, type ModelDirectory, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { Logger } from '@darkroom/service';

type Options = Parameters<typeof readModelDirectory>[1];

/**
 * Reads the model's directory and the heads of its graphs, and logs which files are its parts and what of it costs time.
 *
 * @throws DarkroomError `model_unsupported` as `readModelDirectory` and `describeModel` do.
 */
export async function readModel(path: string, options: Options, log: Logger): Promise<ModelDirectory> {
  const directory = await readModelDirectory(path, options);
  const { graphs, hasTimestepPerRow } = describeModel(directory);
  for (const { part, files, dtype, bytes } of graphs) {
    log.info({ model: directory.card.id, part, file: files[0], dtype, bytes }, 'a part of the model');
  }
  if (!hasTimestepPerRow) {
    const cost = 'a step costs one model call for each timestep among its pictures, not one for all';
    log.warn({ model: directory.card.id, cost }, 'the denoiser was exported with one timestep for all rows');
  }
  return directory;
}
