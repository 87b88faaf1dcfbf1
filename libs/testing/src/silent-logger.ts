import { createLogger, type Logger } from '@darkroom/service';

/** A logger for services under test that says nothing, unless `LOG_LEVEL` is set. */
export function silentLogger(): Logger {
  return createLogger({ app: 'test', level: process.env['LOG_LEVEL'] ?? 'silent' });
}
