import type { RequestEvent } from '@darkroom/core';
import { createWakeSignal } from './wake-signal.ts';

/** What reached a reader since it last looked. Bounded: a reader that is slow is told to read the log instead. */
export interface LiveEvents {
  readonly add: (event: RequestEvent) => void;
  /** The oldest one. */
  readonly next: () => RequestEvent | undefined;
  /** Something may have been missed. */
  readonly markBehind: () => void;
  /** Whether something was missed; asking settles it. */
  readonly takeBehind: () => boolean;
  /** Wakes the reader without an event. */
  readonly wake: () => void;
  /** Resolves when anything of the above has happened since the last wait. */
  readonly changed: () => Promise<void>;
}

/** Events hold previews and a process has many readers, so that few are kept for each. */
const capacity = 16;

export function createLiveEvents(): LiveEvents {
  const events: RequestEvent[] = [];
  let isBehind = true; // until the log has been read once
  const { wake, woken } = createWakeSignal();
  return {
    add(event) {
      if (events.length === capacity) {
        events.length = 0;
        isBehind = true;
      } else if (!isBehind) events.push(event);
      wake();
    },
    next: () => events.shift(),
    markBehind() {
      isBehind = true;
      wake();
    },
    takeBehind() {
      const was = isBehind;
      isBehind = false;
      return was;
    },
    wake,
    changed: woken,
  };
}
