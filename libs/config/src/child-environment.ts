import type { settings } from './settings.ts';

type Variable = (typeof settings)[keyof typeof settings]['variable'];

/** The environment of a process that we start: our own, with some settings changed. */
export function childEnvironment(changes: Partial<Record<Variable, string>>): Record<string, string | undefined> {
  return { ...process.env, ...changes };
}
