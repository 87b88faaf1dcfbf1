/** Processes of the system. */
export const appNames = ['api', 'batch-former', 'worker', 'janitor', 'webhook-sender'] as const;
export type AppName = (typeof appNames)[number];

/** Readers of settings: the processes, and `npm run model`. */
export type ReaderName = AppName | 'model';

/** Type of a setting's value: its parser and a description of valid values. */
export interface SettingKind<Value> {
  /** Returns undefined for an invalid value. */
  parse: (text: string) => Value | undefined;
  /** Completes "expected …" in an error message. */
  range: string;
  unit?: string | undefined;
  /** The value is never shown, not even if it is invalid. */
  isSecret?: true;
}

/** Description and default of a setting. */
interface SettingText {
  /** Default as written in the environment. */
  default?: string;
  /** Describes the default that `loadConfig` computes. */
  computed?: string;
  /** Describes the behaviour without a value; "none" by default. */
  absent?: string;
  doc: string;
}

/** Row of the table of settings, from which parsing, error messages and documentation derive. */
export interface Setting<Value = unknown, App extends ReaderName = ReaderName> extends SettingText {
  variable: string;
  kind: SettingKind<Value>;
  apps: readonly App[];
}

/**
 * Creates rows for some apps. The type of a row's value is optional if it has neither a default nor a computed value.
 */
export function readBy<const App extends ReaderName>(...apps: readonly App[]) {
  return <Value, Text extends SettingText>(variable: string, kind: SettingKind<Value>, text: Text) =>
    ({ variable, kind, apps, ...text }) as Setting<
      Text extends { default: string } | { computed: string } ? Value : Value | undefined,
      App
    >;
}
