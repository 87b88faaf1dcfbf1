import type { Clock } from '@darkroom/core';

/** Something that is read for everybody who asks within a second. */
export interface Cached<Value> {
  get(): Promise<Value>;
  /** Past the cache. */
  reload(): Promise<Value>;
}

const maxAgeMs = 1000;

export function createCached<Value>(clock: Clock, load: () => Promise<Value>): Cached<Value> {
  let cached: { value: Promise<Value>; readAtMs: number } | undefined;
  const reload = (): Promise<Value> => {
    const entry = { value: load(), readAtMs: clock.now() };
    cached = entry;
    // A failure is for those who asked, not for everybody after them.
    entry.value.catch(() => {
      if (cached === entry) cached = undefined;
    });
    return entry.value;
  };
  // A clock that was set back makes it old too.
  const isFresh = ({ readAtMs }: { readAtMs: number }): boolean => Math.abs(clock.now() - readAtMs) < maxAgeMs;
  return {
    get: () => (cached !== undefined && isFresh(cached) ? cached.value : reload()),
    reload,
  };
}
