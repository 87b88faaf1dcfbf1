import { parseArgs } from 'node:util';
import { type DtypeChoice, dtypeChoiceRange, isModelId, parseDtypeChoice } from '@darkroom/core';
import { CommandError } from './command-error.ts';

export type Command =
  | { command: 'help' }
  | { command: 'list' }
  | { command: 'check'; directory: string }
  | CompareCommand
  | { command: 'pull'; repo: string; revision: string; dtypes: DtypeChoice; name: string | undefined };

export interface CompareCommand {
  command: 'compare';
  directory: string;
  /** The first is what the others are compared with; empty for what there is. */
  choices: DtypeChoice[];
  prompts: number;
  /** The model's own by default. */
  steps: number | undefined;
  rows: number;
}

export const usage = `npm run model -- pull <repo id> [--revision <branch, tag or commit>] [--dtype auto|fp32|fp16|int8[,<part>=<dtype>…]] [--name <id>]
    downloads a model from the Hugging Face hub into models/<id>; run again, it goes on where it was
npm run model -- list
    the models in models/
npm run model -- check <directory>
    loads a model, says what it is and what it needs, and takes one step with it
npm run model -- compare <directory> [<dtypes>…] [--prompts 32] [--steps <n>] [--rows 8]
    makes the same pictures in each dtype, such as fp32 int8 int8,vae_decoder=fp16: sizes, times, PSNR to the first`;

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
    case 'compare':
      return readCompare(rest);
    case 'pull':
      return readPull(rest);
    default:
      throw new CommandError(`there is no command ${JSON.stringify(command)}; there are pull, list, check and compare`);
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
  const dtypes = readChoice('--dtype', wanted);
  if (name !== undefined && !isModelId(name)) {
    const expected = '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends';
    throw new CommandError(`--name is ${JSON.stringify(name)}, expected ${expected}`);
  }
  return { command: 'pull', repo, revision, dtypes, name };
}

function readCompare(words: readonly string[]): Command {
  const text = { type: 'string' } as const;
  const { positionals, values } = parse(words, { prompts: text, steps: text, rows: text });
  const [directory, ...choices] = positionals;
  if (directory === undefined) throw new CommandError('expected a directory');
  const { prompts = '32', steps, rows = '8' } = values as Partial<Record<string, string>>;
  return {
    command: 'compare',
    directory,
    choices: choices.map((choice) => readChoice('a dtype', choice)),
    prompts: readCount('--prompts', prompts),
    steps: steps === undefined ? undefined : readCount('--steps', steps),
    rows: readCount('--rows', rows),
  };
}

function readChoice(what: string, text: string): DtypeChoice {
  const choice = parseDtypeChoice(text);
  if (choice !== undefined) return choice;
  throw new CommandError(`${what} is ${JSON.stringify(text)}, expected ${dtypeChoiceRange}`);
}

function readCount(what: string, text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new CommandError(`${what} is ${JSON.stringify(text)}, expected a whole number from 1 to 9999`);
}

function read(words: readonly string[], count: number, options: Record<string, { type: 'string' }>) {
  const parsed = parse(words, options);
  const { positionals } = parsed;
  if (positionals.length === count) return parsed;
  throw new CommandError(`expected ${count === 1 ? 'one argument' : 'no argument'}, not ${positionals.length}`);
}

function parse(words: readonly string[], options: Record<string, { type: 'string' }>) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}
