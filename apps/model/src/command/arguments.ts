import { parseArgs, type ParseArgsConfig } from 'node:util';
import { type DtypeChoice, dtypeChoiceRange, isModelId, parseDtypeChoice, itemAt } from '@darkroom/core';
import { CommandError } from './command-error.ts';

export const usage = `npm run model -- pull <repo id> [--revision <branch, tag or commit>] [--dtype auto|fp32|fp16|int8|q4[,<part>=<dtype>…]] [--name <id>]
    downloads a model from the Hugging Face hub into models/<id>; run it again to resume
npm run model -- list
    lists the models in models/
npm run model -- check <directory>
    loads a model, describes it and its memory, and runs one step or writes a sentence
npm run model -- compare <directory> [<dtypes>…] [--prompts 32] [--steps <n>] [--rows 8]
    makes the same images in each dtype, such as fp32 int8 int8,vae_decoder=fp16, and compares sizes, times and PSNR with the first`;

export type Command = ReturnType<typeof readArguments>;
export type PullCommand = ReturnType<typeof readPull>;
export type CompareCommand = ReturnType<typeof readCompare>;

/** Parses the command line. @throws CommandError naming what is wrong. */
export function readArguments(words: readonly string[]) {
  const [command, ...rest] = words;
  switch (command) {
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      return { command: 'help' as const };
    case 'list':
      assertCount(parse(rest, {}).positionals, 0);
      return { command };
    case 'check':
      return { command, directory: itemAt(assertCount(parse(rest, {}).positionals, 1), 0) };
    case 'compare':
      return readCompare(rest);
    case 'pull':
      return readPull(rest);
    default:
      throw new CommandError(`the command is ${JSON.stringify(command)}, expected pull, list, check or compare`);
  }
}

function readPull(words: readonly string[]) {
  const { positionals, values } = parse(words, {
    revision: { type: 'string', default: 'main' },
    dtype: { type: 'string', default: 'auto' },
    name: { type: 'string' },
  });
  const repo = itemAt(assertCount(positionals, 1), 0);
  const { revision, name } = values;
  if (!/^(?!.*\.\.)[\w.-]+(?:\/[\w.-]+)?$/.test(repo)) {
    throw new CommandError(`the repository is ${JSON.stringify(repo)}, expected an id such as owner/name`);
  }
  const dtypes = readChoice('--dtype', values.dtype);
  if (name !== undefined && !isModelId(name)) {
    const expected = '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends';
    throw new CommandError(`--name is ${JSON.stringify(name)}, expected ${expected}`);
  }
  /** `name` is the model's local id; by default the last part of the repository's name. */
  return { command: 'pull' as const, repo, revision, dtypes, name };
}

function readCompare(words: readonly string[]) {
  const { positionals, values } = parse(words, {
    prompts: { type: 'string', default: '32' },
    steps: { type: 'string' },
    rows: { type: 'string', default: '8' },
  });
  const [directory, ...choices] = positionals;
  if (directory === undefined) throw new CommandError('expected a directory');
  return {
    command: 'compare' as const,
    directory,
    /** The first one is the reference; empty means fp32 and all other available dtypes. */
    choices: choices.map((choice) => readChoice('a dtype', choice)),
    /** Number of images per dtype. */
    prompts: readCount('--prompts', values.prompts),
    /** The model's default if undefined. */
    steps: values.steps === undefined ? undefined : readCount('--steps', values.steps),
    /** Images per batch. */
    rows: readCount('--rows', values.rows),
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

function assertCount(words: readonly string[], count: number): readonly string[] {
  if (words.length === count) return words;
  throw new CommandError(`expected ${count === 1 ? 'one argument' : 'no argument'}, not ${words.length}`);
}

function parse<const Options extends NonNullable<ParseArgsConfig['options']>>(
  words: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}
