import type { Flags } from './flags.ts';

/**
 * Returns our environment for a child process that must return freed memory to the system. glibc raises its trim
 * threshold with the size of freed blocks: after freeing a 0.5 GB graph it keeps nearly all of it. Other C libraries
 * ignore the variable.
 */
export function memoryReturningEnvironment(): Record<string, string | undefined> {
  // 128 KiB is the initial value; setting it disables the adaptive threshold.
  return { MALLOC_TRIM_THRESHOLD_: '131072', ...process.env };
}

/** Returns our environment with some variables changed, for a child process. */
export function childEnvironment(changes: Readonly<Record<string, string>>): Record<string, string | undefined> {
  return { ...process.env, ...changes };
}

/** Copies settings given as flags to the environment, for child processes and libraries that read it. */
export function exportFlagsToEnvironment({ values }: Flags): void {
  Object.assign(process.env, values);
}
