import { isModelId } from '@darkroom/core';
import { CommandError } from '../command-error.ts';

/** What a repository is called here, where a model's name is also its id in requests: the last part of its own name. */
export function modelNameOf(repo: string): string {
  const name = repo
    .split('/')
    .at(-1)!
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^[._-]+|[._-]+$/g, '');
  if (isModelId(name)) return name;
  throw new CommandError(`${repo} does not make a model's name: give one with --name`);
}
