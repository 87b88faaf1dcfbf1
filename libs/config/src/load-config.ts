import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { isModelId } from '@darkroom/core';
import { ConfigError } from './config-error.ts';
import { flagOf, type Flags, noFlags } from './flags.ts';
import { findMisspelledVariables } from './misspelled-variables.ts';
import { isOwnModule } from './setting-kinds.ts';
import type { ReaderName, Setting } from './setting.ts';
import { settings } from './settings.ts';
import { workerProblems } from './worker-rules.ts';

type Settings = typeof settings;

type NamesFor<App extends ReaderName> = {
  [Name in keyof Settings]: App extends Settings[Name]['apps'][number] ? Name : never;
}[keyof Settings];

type ValueOf<Row> = Row extends Setting<infer Value> ? Value : never;

/** What one app is configured with: frozen, every default filled in, units in the names. */
export type Config<App extends ReaderName> = { readonly [Name in NamesFor<App>]: ValueOf<Settings[Name]> };

export type ApiConfig = Config<'api'>;
export type ModelConfig = Config<'model'>;

/** Names and values as the operating system gives them. An empty value counts as not set, as compose files write it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Of whatever app; absent what it does not read, or was refused. */
type Values = { -readonly [Name in keyof Config<ReaderName>]?: Config<ReaderName>[Name] | undefined };

/** A setting as an app was given it. */
export interface SettingInForce {
  readonly variable: string;
  /** Its value as text; of a secret only that there is one. */
  readonly shown: string;
  readonly source: 'flag' | 'environment' | 'default' | 'computed' | 'not set';
}

/**
 * Reads an app's settings, fills in defaults, and freezes the outcome.
 *
 * @param flags go before the environment.
 * @throws {ConfigError} naming every wrong setting at once, with its value and what was expected.
 */
export function loadConfig<App extends ReaderName>(
  app: App,
  environment: Environment = process.env,
  flags: Flags = noFlags,
): Config<App> {
  const problems = [...flags.problems];
  const given = { ...environment, ...flags.values };
  const read = settingsReadBy(app).map(([name, setting]) => [name, readSetting(setting, given, { flags, problems })]);
  const values = Object.fromEntries(read) as Values;
  const isSet = (variable: string): boolean => Boolean(given[variable]?.trim());
  fillComputedDefaults(values, problems);
  problems.push(...crossFieldProblems(values), ...workerProblems(values, isSet));
  const known = Object.values(settings).map(({ variable }) => variable);
  problems.push(...findMisspelledVariables(environment, known));
  if (problems.length > 0) throw new ConfigError(problems);
  // Made name by name of the same table that the type is made of.
  return Object.freeze(values) as Config<App>;
}

/**
 * The same settings one by one, with where each came from.
 *
 * @throws {ConfigError} as `loadConfig`.
 */
export function settingsInForce(
  app: ReaderName,
  environment: Environment = process.env,
  flags: Flags = noFlags,
): SettingInForce[] {
  const values = loadConfig(app, environment, flags) as Readonly<Record<string, unknown>>;
  return settingsReadBy(app).map(([name, { variable, kind, default: standard }]) => {
    const text = flags.values[variable] ?? (environment[variable]?.trim() || undefined);
    const value = values[name];
    if (value === undefined) return { variable, shown: '', source: 'not set' };
    const shown = typeof value === 'string' ? value : (text ?? standard ?? '');
    const given = variable in flags.values ? 'flag' : 'environment';
    const source = text === undefined ? (standard === undefined ? 'computed' : 'default') : given;
    return { variable, shown: kind.isSecret ? '***' : maskPassword(shown), source };
  });
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
  const shown = kind.isSecret ? 'set to something else' : JSON.stringify(maskPassword(text));
  const name = variable in flags.values ? flagOf(variable) : variable;
  if (value === undefined) problems.push(`${name} is ${shown}, expected ${kind.range}`);
  return value;
}

function fillComputedDefaults(values: Values, problems: string[]): void {
  if (values.modelDir === undefined) return;
  const host = hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-');
  values.workerId ??= `${host.slice(0, 51) || 'worker'}-${randomBytes(6).toString('hex')}`;
  const { executor, modelDirs } = values;
  if (executor === undefined || executor === 'http' || (modelDirs !== undefined && !isOwnModule(executor))) return;
  // A package by its last part, a file without what says that it is JavaScript.
  const [from, name] = isOwnModule(executor)
    ? ['EXECUTOR', basename(executor).replace(/\.[cm]?[jt]s$/, '')]
    : ['MODEL_DIR', basename(values.modelDir)];
  if (values.modelId === undefined && !isModelId(name))
    problems.push(
      `MODEL_ID is not set and the name of ${from}, ${JSON.stringify(name)}, cannot be an id: expected ${settings.modelId.kind.range}`,
    );
  values.modelId ??= name;
}

/** Whether nobody beyond this machine can reach what listens on `host`, or has asked for it by that name. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Rules between settings. A rule is silent where one of its settings is absent or was already refused. */
function* crossFieldProblems(values: Values): Generator<string> {
  const { host = 'localhost', apiKeys, apiKeysFile, openAccess } = values;
  // Without keys anybody who reaches the API may use it, so that must not be by accident.
  if (openAccess === false && !isLoopback(host) && apiKeys === undefined && apiKeysFile === undefined)
    yield `HOST is ${JSON.stringify(host)} and there are no API keys, so anybody could use the API: set API_KEYS or API_KEYS_FILE, or OPEN_ACCESS=true if something in front of it checks who comes`;
  // Each worker process has a port of its own, after the one of the process that keeps them.
  const { metricsPort = 0, numWorkerProcesses: workers = 1 } = values;
  if (metricsPort > 0 && workers > 1 && metricsPort + workers > 65_535)
    yield `METRICS_PORT is ${metricsPort}, expected at most ${65_535 - workers}: the ${workers} workers of NUM_WORKER_PROCESSES have the ports after it`;
  const { heartbeatMs = 0, workerTtlMs = Infinity, requestTimeoutS = 0, requestTimeoutMaxS = Infinity } = values;
  if (workerTtlMs <= 2 * heartbeatMs)
    yield `WORKER_TTL_MS is ${workerTtlMs}, expected more than twice HEARTBEAT_MS (${heartbeatMs}): one late heartbeat must not bury the worker`;
  if (requestTimeoutS > requestTimeoutMaxS)
    yield `REQUEST_TIMEOUT_S is ${requestTimeoutS}, expected at most REQUEST_TIMEOUT_MAX_S (${requestTimeoutMaxS})`;
}

/** `redis://user:secret@host` with the secret left out: error messages end in logs. */
function maskPassword(text: string): string {
  return text.replace(/^([a-z-]+:\/\/[^:/@]*:).*@/i, '$1***@');
}
