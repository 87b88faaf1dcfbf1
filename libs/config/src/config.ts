import type { ReaderName, Setting } from './setting.ts';
import type { settings } from './settings.ts';

type Settings = typeof settings;

type ValueOf<Name extends keyof Settings> =
  Settings[Name] extends Setting<infer Value, infer _Apps, infer Default>
    ? Value | (Default extends undefined ? undefined : never)
    : never;

type NamesFor<App extends ReaderName> = {
  [Name in keyof Settings]: App extends Settings[Name]['apps'][number] ? Name : never;
}[keyof Settings];

/** What one app is configured with: frozen, every default filled in, units in the names. */
export type Config<App extends ReaderName> = { readonly [Name in NamesFor<App>]: ValueOf<Name> };

export type ApiConfig = Config<'api'>;
export type BatchFormerConfig = Config<'batch-former'>;
export type WorkerConfig = Config<'worker'>;
export type JanitorConfig = Config<'janitor'>;
export type WebhookSenderConfig = Config<'webhook-sender'>;
export type ModelConfig = Config<'model'>;
