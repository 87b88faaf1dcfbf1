/** The processes that the system is made of. */
export const appNames = ['api', 'batch-former', 'worker', 'janitor', 'webhook-sender'] as const;
export type AppName = (typeof appNames)[number];

/** All that read settings: the processes, and `npm run model`. */
export type ReaderName = AppName | 'model';

/** A way to read the text of an environment variable: what it becomes, and in words what it may be. */
export interface SettingKind<Value> {
  /** undefined: it may not be that. */
  parse: (text: string) => Value | undefined;
  /** Completes "expected …" in an error message. */
  range: string;
  unit?: string | undefined;
  /** Its value is never shown, not even when it is wrong. */
  isSecret?: true;
}

/** What a setting does, and what it is where the environment does not say. */
interface SettingText {
  /** As it would be written in the environment. */
  default?: string;
  /** In words, what `loadConfig` works out in its place. */
  computed?: string;
  /** In words, what it means that there is no value; none by default. */
  absent?: string;
  doc: string;
}

/** One row of the table of settings: all that the parser, the error messages and the documentation know about it. */
export interface Setting<Value = unknown, App extends ReaderName = ReaderName> extends SettingText {
  variable: string;
  kind: SettingKind<Value>;
  apps: readonly App[];
}

/** Makes rows for some apps, with the types of which each app's configuration is made: a value may be absent or not. */
export function readBy<const App extends ReaderName>(...apps: readonly App[]) {
  return <Value, Text extends SettingText>(variable: string, kind: SettingKind<Value>, text: Text) =>
    ({ variable, kind, apps, ...text }) as Setting<
      Text extends { default: string } | { computed: string } ? Value : Value | undefined,
      App
    >;
}
