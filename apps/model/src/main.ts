/** `npm run model`: pulls, lists, checks and compares models. */
import { basename, relative, resolve } from 'node:path';
import { ConfigError, loadConfig, type ModelConfig } from '@darkroom/config';
import { DarkroomError, isModelId } from '@darkroom/core';
import { type Command, type PullCommand, readArguments, usage } from './command/arguments.ts';
import { checkModel } from './check/check-model.ts';
import { CommandError } from './command/command-error.ts';
import { compareModel } from './compare/compare-model.ts';
import { BrokenConnectionError } from './hub/broken-connection-error.ts';
import { listModelDirectory } from './list-models.ts';
import { DownloadProgress } from './pull/progress.ts';
import { pullModel } from './pull/pull-model.ts';
import type { TriedModel } from './check/tried-model.ts';

const modelsDirectory = resolve('models');
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());

const write = (text: string): void => void process.stdout.write(text);

async function pull(command: PullCommand, { hubEndpoint: endpoint, hubToken: token }: ModelConfig): Promise<void> {
  const progress = new DownloadProgress({ write, isTerminal: process.stdout.isTTY });
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

/** Returns load options like those of a worker with the same settings. */
function modelAt(directory: string, config: ModelConfig): TriedModel {
  const { modelDtype: dtypes, numThreads, devices, hasLowMemory, safetyChecker } = config;
  const threads = numThreads === 0 ? {} : { threads: numThreads };
  // A worker on such a directory needs MODEL_ID; the results here do not depend on it.
  const id = isModelId(basename(resolve(directory))) ? {} : { id: 'unnamed' };
  return {
    directory,
    dtypes,
    devices,
    hasLowMemory,
    safetyChecker,
    ...threads,
    ...id,
  };
}

async function run(command: Command): Promise<void> {
  if (command.command === 'help') return write(`${usage}\n`);
  if (command.command === 'list') return write(`${await listModelDirectory(modelsDirectory)}\n`);
  const config = loadConfig('model');
  if (command.command === 'pull') return pull(command, config);
  const tried = { model: modelAt(command.directory, config), signal: stop.signal, write };
  return command.command === 'check' ? checkModel(tried) : compareModel({ ...command, ...tried });
}

/** Returns the message of an expected error, and the stack of others, which are defects. */
function describe(error: unknown): string {
  if (stop.signal.aborted) return 'stopped; run a pull again to resume it';
  if (error instanceof BrokenConnectionError) {
    return `${error.message}; giving up. Run the same command again to resume.`;
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
