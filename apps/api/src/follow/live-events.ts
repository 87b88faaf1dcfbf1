import type { RequestEvent } from '@darkroom/core';
import { createWakeSignal } from './wake-signal.ts';

/** What reached a reader since it last looked. Bounded: a reader that is slow is told to read the log instead. */
export type LiveEvents = ReturnType<typeof createLiveEvents>;

/** Events hold previews and a process has many readers, so that few are kept for each. */
const capacity = 16;

export function createLiveEvents() {
  const events: RequestEvent[] = [];
  let isBehind = true; // until the log has been read once
  const { wake, woken } = createWakeSignal();
  return {
    add: (event: RequestEvent): void => {
      if (events.length === capacity) {
        events.length = 0;
        isBehind = true;
      } else if (!isBehind) events.push(event);
      wake();
    },
    /** The oldest one. */
    next: () => events.shift(),
    /** Something may have been missed. */
    markBehind: (): void => {
      isBehind = true;
      wake();
    },
    /** Whether something was missed; asking settles it. */
    takeBehind: (): boolean => {
      const was = isBehind;
      isBehind = false;
      return was;
    },
    /** Wakes the reader without an event. */
    wake,
    /** Resolves when anything of the above has happened since the last wait. */
    changed: woken,
  };
}
