import { parseArgs } from 'node:util';
import { dtypeChoiceRange, isModelId, parseDtypeChoice } from '@darkroom/core';
import type { DtypeChoice } from '@darkroom/core';
import { CommandError } from './command-error.ts';

export type Command =
  | { command: 'help' }
  | { command: 'list' }
  | { command: 'check'; directory: string }
  | { command: 'pull'; repo: string; revision: string; dtypes: DtypeChoice; name: string | undefined };

export const usage = `npm run model -- pull <repo id> [--revision <branch, tag or commit>] [--dtype auto|fp32|fp16|int8[,<part>=<dtype>…]] [--name <id>]
    downloads a model from the Hugging Face hub into models/<id>; run again, it goes on where it was
npm run model -- list
    the models in models/
npm run model -- check <directory>
    loads a model, says what it is and what it needs, and takes one step with it`;

/** @throws CommandError naming what is wrong with them. */
export function readArguments(words: readonly string[]): Command {
  const [command, ...rest] = words;
  switch (command) {
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      return { command: 'help' };
    case 'list':
      read(rest, 0, {});
      return { command };
    case 'check':
      return { command, directory: read(rest, 1, {}).positionals[0]! };
    case 'pull':
      return readPull(rest);
    default:
      throw new CommandError(`there is no command ${JSON.stringify(command)}; there are pull, list and check`);
  }
}

function readPull(words: readonly string[]): Command {
  const text = { type: 'string' } as const;
  const { positionals, values } = read(words, 1, { revision: text, dtype: text, name: text });
  const repo = positionals[0]!;
  const { revision = 'main', dtype: wanted = 'auto', name } = values as Partial<Record<string, string>>;
  if (!/^(?!.*\.\.)[\w.-]+(?:\/[\w.-]+)?$/.test(repo)) {
    throw new CommandError(`${JSON.stringify(repo)} is no repository's id, such as owner/name`);
  }
  const dtypes = parseDtypeChoice(wanted);
  if (dtypes === undefined) {
    throw new CommandError(`--dtype is ${JSON.stringify(wanted)}, expected ${dtypeChoiceRange}`);
  }
  if (name !== undefined && !isModelId(name)) {
    const expected = '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends';
    throw new CommandError(`--name is ${JSON.stringify(name)}, expected ${expected}`);
  }
  return { command: 'pull', repo, revision, dtypes, name };
}

function read(words: readonly string[], count: number, options: Record<string, { type: 'string' }>) {
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
  const { positionals } = parsed;
  if (positionals.length === count) return parsed;
  throw new CommandError(`expected ${count === 1 ? 'one argument' : 'no argument'}, not ${positionals.length}`);
}
