import type { Clock } from '@darkroom/core';

/** Value that is loaded at most once a second and shared by all readers. */
export interface Cached<Value> {
  get(): Promise<Value>;
  /** Bypasses the cache. */
  reload(): Promise<Value>;
}

const maxAgeMs = 1000;

export function createCached<Value>(clock: Clock, load: () => Promise<Value>): Cached<Value> {
  let cached: { value: Promise<Value>; readAtMs: number } | undefined;
  const reload = (): Promise<Value> => {
    const entry = { value: load(), readAtMs: clock.now() };
    cached = entry;
    // Failures are not cached: later readers try again.
    entry.value.catch(() => {
      if (cached === entry) cached = undefined;
    });
    return entry.value;
  };
  return {
    get() {
      // Also expires if the clock was set back.
      if (cached === undefined || Math.abs(clock.now() - cached.readAtMs) >= maxAgeMs) return reload();
      return cached.value;
    },
    reload,
  };
}
