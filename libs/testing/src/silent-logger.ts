import { createLogger, type Logger } from '@darkroom/service';

/** Creates a logger for services under test, silent unless `LOG_LEVEL` is set. */
export function silentLogger(): Logger {
  return createLogger({ app: 'test', level: process.env['LOG_LEVEL'] ?? 'silent' });
}
