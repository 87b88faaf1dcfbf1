import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, destination, multistream, pino, stdTimeFunctions } from 'pino';
import type pinoPretty from 'pino-pretty';
import { serializeError } from './serialize-error.ts';

export type { Logger } from 'pino';

export interface CreateLoggerOptions {
  /** Minimum level that is written. */
  level?: string;
  /** File to which every line is appended as JSON; its directory is created. Several processes may share one file. */
  file?: string | undefined;
  /** Name of the process in each line. */
  app: string;
  /** Replaces standard output; for tests. */
  stream?: DestinationStream;
}

const promptNames = ['prompt', 'negative_prompt', 'negativePrompt'];
/** Prompts are private: redacts them at every depth at which objects are logged. */
const redactedPaths = promptNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.*.*.${name}`]);

/**
 * Creates a structured logger: pretty on a terminal, JSON otherwise. Writes synchronously, so that no line before a
 * crash is lost.
 */
export function createLogger({ level = 'info', file, app, stream }: CreateLoggerOptions): Logger {
  const output = stream ?? (process.stdout.isTTY ? prettyOutput() : destination({ dest: 1, sync: true }));
  const streams = [{ level: 'trace' as const, stream: output }];
  if (file)
    streams.push({ level: 'trace', stream: destination({ dest: file, sync: true, append: true, mkdir: true }) });
  return pino(
    {
      level,
      base: { app, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serializeError },
      redact: { paths: redactedPaths, censor: '[not logged]' },
    },
    streams.length > 1 ? multistream(streams) : output,
  );
}

function prettyOutput(): DestinationStream {
  // Loaded on demand: it has thirty modules that JSON output does not need.
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof pinoPretty;
  return pretty({
    colorize: true,
    sync: true,
    ignore: 'pid,app',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: '[{app}] {msg}',
  });
}
