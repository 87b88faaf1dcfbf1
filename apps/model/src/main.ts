/** `npm run model`: gets models, lists, checks and compares them. */
import { basename, relative, resolve } from 'node:path';
import { ConfigError, loadConfig, type ModelConfig } from '@darkroom/config';
import { DarkroomError, isModelId } from '@darkroom/core';
import { type Command, type PullCommand, readArguments, usage } from './arguments.ts';
import { checkModel } from './check/check-model.ts';
import { CommandError } from './command-error.ts';
import { compareModel } from './compare/compare-model.ts';
import { BrokenConnectionError } from './hub/broken-connection-error.ts';
import { listModels } from './list-models.ts';
import { Progress } from './pull/progress.ts';
import { pullModel } from './pull/pull-model.ts';
import type { TriedModel } from './tried-model.ts';

const modelsDirectory = resolve('models');
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());

const write = (text: string): void => void process.stdout.write(text);

async function pull(command: PullCommand, { hubEndpoint: endpoint, hubToken: token }: ModelConfig): Promise<void> {
  const progress = new Progress({ write, isTerminal: process.stdout.isTTY });
  try {
    const options = { ...command, endpoint, token, modelsDirectory, progress, signal: stop.signal };
    const { directory, isNew } = await pullModel(options);
    const shown = relative(process.cwd(), directory);
    write(`${isNew ? 'downloaded to' : 'already there:'} ${shown}
check it: npm run model -- check ${shown}
`);
  } finally {
    progress.end();
  }
}

/** The model of a directory, as a worker with the same settings has it. */
function modelAt(directory: string, config: ModelConfig): TriedModel {
  const {
    modelDtype: dtypes,
    numThreads,
    devices,
    isStrictAboutDevice,
    hasLowMemory,
    vaeTileSize,
    safetyChecker,
  } = config;
  const threads = numThreads === 0 ? {} : { threads: numThreads };
  // A worker on a directory of another name needs MODEL_ID; what is found out here does not depend on it.
  const id = isModelId(basename(resolve(directory))) ? {} : { id: 'unnamed' };
  return {
    directory,
    dtypes,
    devices,
    isStrictAboutDevice,
    hasLowMemory,
    vaeTileSize,
    safetyChecker,
    ...threads,
    ...id,
  };
}

async function run(command: Command): Promise<void> {
  if (command.command === 'help') return write(`${usage}\n`);
  if (command.command === 'list') return write(`${await listModels(modelsDirectory)}\n`);
  const config = loadConfig('model');
  if (command.command === 'pull') return pull(command, config);
  const tried = { model: modelAt(command.directory, config), signal: stop.signal, write };
  return command.command === 'check' ? checkModel(tried) : compareModel({ ...command, ...tried });
}

/** What is said of a failure: expected ones in their own words, others as the defects they are. */
function describe(error: unknown): string {
  if (stop.signal.aborted) return 'stopped; a pull goes on from here when it is run again';
  if (error instanceof BrokenConnectionError) {
    return `${error.message}; it was given up. What has come is kept: the same command goes on from here.`;
  }
  const isExpected = error instanceof CommandError || error instanceof ConfigError || DarkroomError.isInstance(error);
  if (isExpected) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

try {
  await run(readArguments(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`model: ${describe(error)}\n`);
  process.exitCode = stop.signal.aborted ? 130 : 1;
}
