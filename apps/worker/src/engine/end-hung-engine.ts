import type { Executor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';

export interface HungEngine {
  /** Of its life, so more than once when it has outlived a kill. */
  timesOverdue: number;
  /** Requests it has. */
  requests: number;
  log: Logger;
}

/**
 * Kills it. One that the kernel cannot end, since it hangs in a call to a driver, never counts as lost: its requests
 * would stay here until their deadlines, with every lock renewed. So this process goes, and others take them over.
 */
export function endHungEngine(executor: Executor, { timesOverdue, requests, log }: HungEngine): void {
  if (timesOverdue === 1) {
    log.error({ requests }, 'the engine has work and says nothing: killing it');
    return executor.kill();
  }
  log.fatal({ requests }, 'the engine cannot be killed: see the driver and its device');
  process.exit(1);
}
