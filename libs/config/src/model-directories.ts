/** The directories of several models (MODEL_DIRS). */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isModelId } from '@darkroom/core';
import { modelDirectoryProblem, modelFiles } from './model-directory-problem.ts';
import type { SettingKind } from './setting.ts';
import { modelId } from './setting-kinds.ts';

/**
 * A list of directories, made absolute, without duplicates. `models/*` means all visible directories in `models`,
 * sorted; if there are none, it stays as it is.
 */
export const modelDirectories: SettingKind<readonly string[]> = {
  parse: (text) => {
    const paths = text.split(',').map((path) => path.trim());
    if (paths.includes('')) return undefined;
    return [
      ...new Set(paths.flatMap((path) => (basename(path) === '*' ? directoriesIn(dirname(path)) : resolve(path)))),
    ];
  },
  range: 'paths with commas between them, `/*` at the end of one for all directories in it',
};

/** Returns what is wrong with directories that must each hold a model and be named by a valid model id. */
export function* modelDirectoryProblems(directories: readonly string[]): Generator<string> {
  const byId = new Map<string, string>();
  for (const directory of directories) {
    const id = basename(directory);
    const other = byId.get(id);
    byId.set(id, directory);
    if (id === '*')
      yield `MODEL_DIRS has ${JSON.stringify(directory)}, expected directories in ${dirname(directory)}, and there is none`;
    else if (!modelFiles.some((file) => existsSync(join(directory, file))))
      yield `MODEL_DIRS has ${JSON.stringify(directory)}: ${modelDirectoryProblem(directory) ?? `expected a ${modelFiles.join(' or a ')} in it`}`;
    else if (!isModelId(id))
      yield `MODEL_DIRS has ${JSON.stringify(directory)}, expected a name that can be an id: ${modelId.range}`;
    else if (other !== undefined)
      yield `MODEL_DIRS has ${JSON.stringify(other)} and ${JSON.stringify(directory)}, expected one model of the id ${id}`;
  }
}

function directoriesIn(parent: string): string[] {
  const isDirectory = (name: string): boolean => !name.startsWith('.') && isDirectoryAt(join(parent, name));
  const names = existsSync(parent) ? readdirSync(parent).filter(isDirectory).toSorted() : [];
  return (names.length > 0 ? names : ['*']).map((name) => resolve(parent, name));
}

/** Follows symbolic links. */
function isDirectoryAt(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
