import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { isModelId } from '@darkroom/core';
import { ConfigError } from './config-error.ts';
import { flagOf, type Flags, noFlags } from './flags.ts';
import { findMisspelledVariables } from './misspelled-variables.ts';
import { isCustomModule, trueOrFalse } from './setting-kinds.ts';
import type { ReaderName, Setting } from './setting.ts';
import { settings } from './settings.ts';
import { workerProblems } from './worker-rules.ts';

type Settings = typeof settings;

type NamesFor<App extends ReaderName> = {
  [Name in keyof Settings]: App extends Settings[Name]['apps'][number] ? Name : never;
}[keyof Settings];

type ValueOf<Row> = Row extends Setting<infer Value> ? Value : never;

/** Settings of one app: frozen, defaults filled in, units in the names. */
export type Config<App extends ReaderName> = { readonly [Name in NamesFor<App>]: ValueOf<Settings[Name]> };

export type ApiConfig = Config<'api'>;
export type ModelConfig = Config<'model'>;

/** Environment variables. An empty value counts as not set, as compose files write it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of any app; absent if the app does not read them or if they were invalid. */
type Values = { -readonly [Name in keyof Config<ReaderName>]?: Config<ReaderName>[Name] | undefined };

/** Effective value of a setting. */
export interface SettingInForce {
  readonly variable: string;
  /** Value as text; secrets are masked. */
  readonly shown: string;
  readonly source: 'flag' | 'environment' | 'default' | 'computed' | 'not set';
}

/**
 * Reads an app's settings, fills in defaults and freezes the result.
 *
 * @param flags override the environment.
 * @throws {ConfigError} naming every invalid setting at once, with its value and what was expected.
 */
export function loadConfig<App extends ReaderName>(
  app: App,
  environment: Environment = process.env,
  flags: Flags = noFlags,
): Config<App> {
  const problems = [...flags.problems];
  const given = givenValues(environment, flags, problems);
  const read = settingsReadBy(app).map(([name, setting]) => [name, readSetting(setting, given, { flags, problems })]);
  const values = Object.fromEntries(read) as Values;
  const isSet = (variable: string): boolean => Boolean(given[variable]?.trim());
  fillComputedDefaults(values, problems);
  problems.push(...crossFieldProblems(values), ...workerProblems(values, isSet));
  const known = [batchingSwitch, ...Object.values(settings).map(({ variable }) => variable)];
  problems.push(...findMisspelledVariables(environment, known));
  if (problems.length > 0) throw new ConfigError(problems);
  // Built from the same table, name by name, as the type.
  return Object.freeze(values) as Config<App>;
}

/**
 * Returns the effective settings with their sources.
 *
 * @throws {ConfigError} as `loadConfig`.
 */
export function settingsInForce(
  app: ReaderName,
  environment: Environment = process.env,
  flags: Flags = noFlags,
): SettingInForce[] {
  const values = loadConfig(app, environment, flags) as Readonly<Record<string, unknown>>;
  const texts = givenValues(environment, flags);
  return settingsReadBy(app).map(([name, { variable, kind, default: standard }]) => {
    const text = texts[variable]?.trim() || undefined;
    const value = values[name];
    if (value === undefined) return { variable, shown: '', source: 'not set' };
    const shown = typeof value === 'string' ? value : (text ?? standard ?? '');
    const given = variable in flags.values ? 'flag' : 'environment';
    const source = text === undefined ? (standard === undefined ? 'computed' : 'default') : given;
    return { variable, shown: kind.isSecret ? '***' : maskPassword(shown), source };
  });
}

/** Another name of `BATCH_MAX_SIZE=1` if false, known from the specification that this server implements. */
const batchingSwitch = 'ENABLE_PROMPT_BATCHING';

/** Returns the texts of all settings: flags override the environment. */
function givenValues(environment: Environment, flags: Flags, problems: string[] = []): Environment {
  const given = { ...environment, ...flags.values };
  const text = given[batchingSwitch]?.trim();
  if (!text) return given;
  const isBatching = trueOrFalse.parse(text);
  if (isBatching === undefined)
    problems.push(`${batchingSwitch} is ${JSON.stringify(text)}, expected ${trueOrFalse.range}`);
  return isBatching === false ? { ...given, BATCH_MAX_SIZE: '1' } : given;
}

function settingsReadBy(app: ReaderName): [string, Setting][] {
  return Object.entries<Setting>(settings).filter(([, { apps }]) => apps.includes(app));
}

function readSetting(
  { variable, kind, ...setting }: Setting,
  given: Environment,
  { flags, problems }: { flags: Flags; problems: string[] },
): unknown {
  const text = given[variable]?.trim() || setting.default;
  if (text === undefined) return undefined;
  const value = kind.parse(text);
  const shown = kind.isSecret ? 'invalid (value hidden)' : JSON.stringify(maskPassword(text));
  const name = variable in flags.values ? flagOf(variable) : variable;
  if (value === undefined) problems.push(`${name} is ${shown}, expected ${kind.range}`);
  return value;
}

function fillComputedDefaults(values: Values, problems: string[]): void {
  if (values.modelDir === undefined) return;
  const host = hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-');
  values.workerId ??= `${host.slice(0, 51) || 'worker'}-${randomBytes(6).toString('hex')}`;
  const { executor, modelDirs, module } = values;
  if (executor === 'python' && module === undefined) return;
  if (executor === undefined || executor === 'http' || (modelDirs !== undefined && !isCustomModule(executor))) return;
  // The last part of a package name, or a file name without its extension.
  let [from, name] = ['MODEL_DIR', basename(values.modelDir)];
  if (isCustomModule(executor)) [from, name] = ['EXECUTOR', basename(executor).replace(/\.[cm]?[jt]s$/, '')];
  if (executor === 'python' && module !== undefined) [from, name] = ['MODULE', basename(module, '.py')];
  if (values.modelId === undefined && !isModelId(name))
    problems.push(
      `MODEL_ID is not set and the name of ${from}, ${JSON.stringify(name)}, cannot be an id: expected ${settings.modelId.kind.range}`,
    );
  values.modelId ??= name;
}

/** Returns true for a host name or address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Checks rules between settings. Skips a rule if one of its settings is absent or was already refused. */
function* crossFieldProblems(values: Values): Generator<string> {
  const { host = 'localhost', apiKeys, apiKeysFile, openAccess } = values;
  // Without keys, anyone who reaches the API may use it; that must be a deliberate choice.
  if (openAccess === false && !isLoopback(host) && apiKeys === undefined && apiKeysFile === undefined)
    yield `HOST is ${JSON.stringify(host)} and there are no API keys, so anyone could use the API: set API_KEYS or API_KEYS_FILE, or OPEN_ACCESS=true if something in front of it authenticates clients`;
  // Each worker process has its own port, after the parent's.
  const { metricsPort = 0, numWorkerProcesses: workers = 1 } = values;
  if (metricsPort > 0 && workers > 1 && metricsPort + workers > 65_535)
    yield `METRICS_PORT is ${metricsPort}, expected at most ${65_535 - workers}: the ${workers} workers of NUM_WORKER_PROCESSES use the ports after it`;
}

/** Masks the password of a URL: error messages end up in logs. */
function maskPassword(text: string): string {
  return text.replace(/^([a-z-]+:\/\/[^:/@]*:).*@/i, '$1***@');
}
