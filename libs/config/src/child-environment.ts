import type { Flags } from './flags.ts';

/**
 * Our own environment, for a process whose memory goes back to the system once it is freed. glibc keeps more of it the
 * larger what is freed: after a graph of half a gigabyte nearly all of it. Other libraries do not read this.
 */
export function memoryReturningEnvironment(): Record<string, string | undefined> {
  // 128 KiB, where it begins, and where it stays once it is set.
  return { MALLOC_TRIM_THRESHOLD_: '131072', ...process.env };
}

/** The environment of a process that we start: our own, with some settings changed. */
export function childEnvironment(changes: Readonly<Record<string, string>>): Record<string, string | undefined> {
  return { ...process.env, ...changes };
}

/** Processes that we start, and libraries that read the environment, find there what we were given as flags. */
export function passOn({ values }: Flags): void {
  Object.assign(process.env, values);
}
