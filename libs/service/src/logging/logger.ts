import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, destination, multistream, pino, stdTimeFunctions } from 'pino';
import type pinoPretty from 'pino-pretty';
import { serializeError } from './serialize-error.ts';

export type { Logger } from 'pino';

export interface CreateLoggerOptions {
  /** The least serious level that is written. */
  level?: string;
  /** Gets every line as JSON too; its directory is made when missing. Several processes may append to one file. */
  file?: string | undefined;
  /** The process, as it shows in each line. */
  app: string;
  /** Where lines go instead of standard output; for tests. */
  stream?: DestinationStream;
}

const promptNames = ['prompt', 'negative_prompt', 'negativePrompt'];
/** What people ask for is theirs: prompts stay out of logs at any depth that we log objects at. */
const redactedPaths = promptNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.*.*.${name}`]);

/**
 * A structured logger: pretty on a terminal, JSON otherwise. Writes are synchronous, so that the lines before a crash
 * are there to be read.
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
  // Thirty modules that nobody needs whose lines go to a file.
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof pinoPretty;
  return pretty({
    colorize: true,
    sync: true,
    ignore: 'pid,app',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: '[{app}] {msg}',
  });
}
