import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../logging/logger.ts';
import { invalidSettingsExitCode } from './run-main.ts';
import { BaseService, type Service } from './service.ts';

export interface StoreServiceOptions {
  /** Checks the server; may wait until it is reachable. */
  check: () => Promise<{ refusal: string | undefined; warnings: readonly string[] }>;
  store: { close(): Promise<void> };
  log: Logger;
  /** Aborts the wait and the start. */
  stopSignal: AbortSignal;
}

/** Max. time that the start waits for the check, ms; the check continues in the background. */
const maxWaitMs = 2000;

/**
 * Checks the store when the process starts and closes it after the other services have stopped. If the check refuses
 * the server, the process exits with the code for invalid settings; warnings are logged once.
 */
export function storeService({ check, store, log, stopSignal }: StoreServiceOptions): Service {
  let isStopped = false;
  const run = async (): Promise<void> => {
    try {
      const { refusal, warnings } = await check();
      for (const warning of warnings) log.warn(warning);
      if (refusal === undefined) return;
      log.fatal({ reason: refusal }, 'refusing to start');
      process.exit(invalidSettingsExitCode);
    } catch (error) {
      // A stop closes the connection during the check.
      if (!isStopped) log.warn({ err: error }, 'could not check the Redis server');
    }
  };
  return new (class extends BaseService {
    protected override async onStart(): Promise<void> {
      await Promise.race([run(), delay(maxWaitMs, undefined, { ref: false, signal: stopSignal })]);
      stopSignal.throwIfAborted();
    }
    protected override async onStop(): Promise<void> {
      isStopped = true;
      await store.close();
    }
  })();
}
