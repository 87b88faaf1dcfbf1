import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describeGraphFile, describeModel, filesOfLoras, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { LoadModelOptions } from '@darkroom/executor';
import { isTextModel, readTextModelDirectory } from '@darkroom/language/model-files';

/** Configuration, tokenizers and templates; each model reads some of them. */
const smallFile = /\.(?:json|txt|jinja|model)$/;

/**
 * Lists the files that a model is loaded from, sorted, relative to its directory: graphs, their weights and
 * configuration. Excludes weights of other variants.
 *
 * @throws DarkroomError `model_unsupported` naming a file that is missing or truncated.
 */
export async function listLoadedFiles(options: LoadModelOptions): Promise<string[]> {
  const { directory } = options;
  const [weights, folders] = await Promise.all([listWeights(options), readdir(directory, { withFileTypes: true })]);
  const inFolders = await Promise.all(
    folders
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(async ({ name }) => (await readdir(join(directory, name))).map((file) => `${name}/${file}`)),
  );
  const small = [...folders.map(({ name }) => name), ...inFolders.flat()].filter((name) => smallFile.test(name));
  return [...new Set([...weights, ...small])].toSorted();
}

async function listWeights(options: LoadModelOptions): Promise<readonly string[]> {
  const { directory } = options;
  if (!(await isTextModel(directory))) {
    const model = await readModelDirectory(directory, options);
    return [...describeModel(model).graphs.flatMap(({ files }) => files), ...filesOfLoras(model.path, model.loras)];
  }
  const { graph } = await readTextModelDirectory(directory, options);
  return describeGraphFile(directory, graph).files;
}
