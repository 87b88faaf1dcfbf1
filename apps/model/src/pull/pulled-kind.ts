import { describeGraphFile, describeModel, readModelDirectory } from '@darkroom/diffusion/model-files';
import { readTextModelDirectory } from '@darkroom/language/model-files';
import { CommandError } from '../command/command-error.ts';
import type { HubFile } from '../hub/hub-repo.ts';
import { chooseImageFiles } from './choose-image-files.ts';
import { chooseTextFiles } from './choose-text-files.ts';
import type { ChooseOptions, ChosenFiles } from './chosen-files.ts';

/** Download of models of one kind. */
export interface PulledKind {
  choose(options: ChooseOptions): Promise<ChosenFiles>;
  /** Reads the small files as a worker does. @throws DarkroomError if a worker could not serve the model. */
  read(directory: string, id: string): Promise<unknown>;
  /** Checks the graphs with their weights too. @throws as `read`. */
  check(directory: string, id: string): Promise<unknown>;
}

const images: PulledKind = {
  choose: chooseImageFiles,
  read: (directory, id) => readModelDirectory(directory, { id }),
  check: async (directory, id) => describeModel(await readModelDirectory(directory, { id })),
};

const text: PulledKind = {
  choose: chooseTextFiles,
  read: (directory, id) => readTextModelDirectory(directory, { id }),
  check: async (directory, id) => describeGraphFile(directory, (await readTextModelDirectory(directory, { id })).graph),
};

/** Returns the kind of a repository. @throws CommandError if its files match no kind. */
export function kindOfFiles(repo: string, files: readonly HubFile[]): PulledKind {
  const has = (name: string) => files.some(({ path }) => path === name);
  if (has('model_index.json')) return images;
  if (has('config.json')) return text;
  const lacks = 'it has no model_index.json at its top, and no config.json';
  throw new CommandError(`${repo} is neither a diffusers model nor a text model: ${lacks}.`);
}
