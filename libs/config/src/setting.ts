import type { z } from 'zod';

/** The processes that the system is made of. */
export const appNames = ['api', 'batch-former', 'worker', 'janitor', 'webhook-sender'] as const;
export type AppName = (typeof appNames)[number];

/** All that read settings: the processes, and `npm run model`. */
export type ReaderName = AppName | 'model';

/** A way to read the text of an environment variable: what it becomes, and in words what it may be. */
export interface SettingKind<Value> {
  schema: z.ZodType<Value, string>;
  /** Completes "expected …" in an error message. */
  range: string;
}

/** The default of a setting that `loadConfig` works out, so that it is never absent. */
export const computed = Symbol('computed');
export type SettingDefault = string | typeof computed | undefined;

/** One row of the table of settings: all that the parser, the error messages and the documentation know about it. */
export interface Setting<Value, Apps extends ReaderName, Default extends SettingDefault> {
  /** The environment variable. */
  variable: string;
  kind: SettingKind<Value>;
  /** As it would be written in the environment; undefined where the setting may be absent. */
  default: Default;
  /** For the documentation, when `default` is not text: what it is then. */
  defaultDoc?: string;
  unit?: 's' | 'ms' | 'bytes' | 'requests' | 'rows' | 'steps' | 'threads' | 'deliveries' | 'processes' | 'pixels';
  doc: string;
  apps: readonly Apps[];
  /** Its value is never shown, not even when it is wrong. */
  isSecret?: boolean;
}

/** Keeps the literal types of a row, so that each app's configuration is typed from the table. */
export function defineSetting<Value, const Apps extends ReaderName, Default extends SettingDefault>(
  setting: Setting<Value, Apps, Default>,
): Setting<Value, Apps, Default> {
  return setting;
}
