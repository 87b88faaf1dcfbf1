/** `npm run model`: gets models, lists, checks and compares them. */
import { relative, resolve } from 'node:path';
import { ConfigError, loadConfig, type ModelConfig } from '@darkroom/config';
import { DarkroomError } from '@darkroom/core';
import { type Command, readArguments, usage } from './arguments.ts';
import { checkModel } from './check/check-model.ts';
import { CommandError } from './command-error.ts';
import { compareModel } from './compare/compare-model.ts';
import { BrokenConnectionError } from './hub/broken-connection-error.ts';
import { listModels } from './list-models.ts';
import { Progress } from './pull/progress.ts';
import { pullModel } from './pull/pull-model.ts';

const modelsDirectory = resolve('models');
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());

const write = (text: string): void => void process.stdout.write(text);

async function pull(command: Extract<Command, { command: 'pull' }>, config: ModelConfig): Promise<void> {
  const progress = new Progress({ write, isTerminal: process.stdout.isTTY });
  const { hubEndpoint, hubToken } = config;
  try {
    const access = { endpoint: hubEndpoint, token: hubToken };
    const options = { ...command, ...access, modelsDirectory, progress, signal: stop.signal };
    const { directory, isNew } = await pullModel(options);
    const shown = relative(process.cwd(), directory);
    write(`${isNew ? 'downloaded to' : 'already there:'} ${shown}
check it: npm run model -- check ${shown}
`);
  } finally {
    progress.end();
  }
}

async function run(command: Command): Promise<void> {
  if (command.command === 'help') return write(`${usage}\n`);
  if (command.command === 'list') return write(`${await listModels(modelsDirectory)}\n`);
  const config = loadConfig('model');
  if (command.command === 'pull') return pull(command, config);
  const { modelDtype: dtypes, numThreads, devices, isStrictAboutDevice, hasLowMemory, vaeTileSize } = config;
  const threads = numThreads === 0 ? {} : { threads: numThreads };
  const options = { devices, isStrictAboutDevice, hasLowMemory, vaeTileSize, ...threads };
  const where = { options, signal: stop.signal, write };
  if (command.command === 'compare') return compareModel({ ...command, ...where });
  return checkModel({ directory: command.directory, dtypes, ...where });
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
