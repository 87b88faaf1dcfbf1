import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../logging/logger.ts';
import { exitCodeOfWrongSettings } from './run-main.ts';
import { BaseService, type Service } from './service.ts';

export interface StoreServiceOptions {
  /** Says whether to go on, once it can: it may have to wait for what it asks. */
  check: () => Promise<{ refusal: string | undefined; warnings: readonly string[] }>;
  store: { close(): Promise<void> };
  log: Logger;
  /** Ends the wait, and the start with it. */
  stopSignal: AbortSignal;
}

/** How long the start waits for the check's answer; it comes later all the same. */
const longestWaitMs = 2000;

/**
 * What the other services of a process stand on: checked when it starts, and closed when they have stopped. Ends the process with
 * the exit code of wrong settings when the check refuses; what it warns of is logged once.
 */
export function storeService({ check, store, log, stopSignal }: StoreServiceOptions): Service {
  let isStopped = false;
  const run = async (): Promise<void> => {
    try {
      const { refusal, warnings } = await check();
      for (const warning of warnings) log.warn(warning);
      if (refusal === undefined) return;
      log.fatal({ reason: refusal }, 'refusing to start');
      process.exit(exitCodeOfWrongSettings);
    } catch (error) {
      // A stop closes the connection under it.
      if (!isStopped) log.warn({ err: error }, 'could not check what this process starts on');
    }
  };
  return new (class extends BaseService {
    protected override async onStart(): Promise<void> {
      await Promise.race([run(), delay(longestWaitMs, undefined, { ref: false, signal: stopSignal })]);
      stopSignal.throwIfAborted();
    }
    protected override async onStop(): Promise<void> {
      isStopped = true;
      await store.close();
    }
  })();
}
