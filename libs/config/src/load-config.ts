import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { isModelId } from '@darkroom/core';
import { ConfigError } from './config-error.ts';
import type { Config } from './config.ts';
import { isLoopback } from './loopback.ts';
import { findMisspelledVariables } from './misspelled-variables.ts';
import type { ReaderName, Setting, SettingDefault } from './setting.ts';
import { settings } from './settings.ts';

/** Names and values as the operating system gives them. An empty value counts as not set, as compose files write it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads an app's settings, fills in defaults, and freezes the outcome.
 *
 * @throws {ConfigError} naming every wrong setting at once, with its value and what was expected.
 */
export function loadConfig<App extends ReaderName>(app: App, environment: Environment = process.env): Config<App> {
  const problems: string[] = [];
  const values: Values = {};
  for (const [name, setting] of settingsFor(app)) values[name] = readSetting(setting, environment, problems);
  fillComputedDefaults(values, problems);
  problems.push(...crossFieldProblems(values));
  const known = Object.values(settings).map((setting) => setting.variable);
  for (const { variable, meant } of findMisspelledVariables(environment, known))
    problems.push(`${variable} is not a setting; did you mean ${meant}?`);
  if (problems.length > 0) throw new ConfigError(problems);
  // Built name by name from the same table that the type is made from.
  return Object.freeze(values) as Config<App>;
}

type AnySetting = Setting<unknown, ReaderName, SettingDefault>;
type SettingName = keyof typeof settings;
type Values = { [Name in SettingName]?: unknown };

/** The settings an app reads, by their names in its configuration. */
function settingsFor(app: ReaderName): [SettingName, AnySetting][] {
  const all = Object.entries(settings) as [SettingName, AnySetting][];
  return all.filter(([, setting]) => setting.apps.includes(app));
}

function readSetting(setting: AnySetting, environment: Environment, problems: string[]): unknown {
  const text = environment[setting.variable]?.trim() || setting.default;
  if (typeof text !== 'string') return undefined;
  const outcome = setting.kind.schema.safeParse(text);
  if (outcome.success) return outcome.data;
  const shown = setting.isSecret === true ? 'set to something else' : JSON.stringify(maskPassword(text));
  problems.push(`${setting.variable} is ${shown}, expected ${setting.kind.range}`);
  return undefined;
}

function fillComputedDefaults(values: Values, problems: string[]): void {
  if (typeof values.modelDir !== 'string') return;
  values.workerId ??= `${
    hostname()
      .replaceAll(/[^A-Za-z0-9._-]/g, '-')
      .slice(0, 51) || 'worker'
  }-${randomBytes(6).toString('hex')}`;
  if (values.modelId !== undefined) return;
  const directoryName = basename(values.modelDir);
  if (isModelId(directoryName)) values.modelId = directoryName;
  else
    problems.push(
      `MODEL_ID is not set and the name of MODEL_DIR, ${JSON.stringify(directoryName)}, cannot be an id: expected ${settings.modelId.kind.range}`,
    );
}

/** Rules between settings. A rule is silent where one of its settings is absent or was already refused. */
function crossFieldProblems(values: Values): string[] {
  const { heartbeatMs, workerTtlMs, requestTimeoutS, requestTimeoutMaxS } = values as Partial<
    Config<'janitor'> & Config<'api'>
  >;
  const problems = [...openAccessProblems(values), ...metricsPortProblems(values)];
  if (heartbeatMs !== undefined && workerTtlMs !== undefined && workerTtlMs <= 2 * heartbeatMs)
    problems.push(
      `WORKER_TTL_MS is ${workerTtlMs}, expected more than twice HEARTBEAT_MS (${heartbeatMs}): one late heartbeat must not bury the worker`,
    );
  if (requestTimeoutS !== undefined && requestTimeoutMaxS !== undefined && requestTimeoutS > requestTimeoutMaxS)
    problems.push(
      `REQUEST_TIMEOUT_S is ${requestTimeoutS}, expected at most REQUEST_TIMEOUT_MAX_S (${requestTimeoutMaxS})`,
    );
  return problems;
}

/** Without keys anybody who reaches the API may use it, so that must not be by accident. */
function openAccessProblems(values: Values): string[] {
  const { host, apiKeys, apiKeysFile, openAccess } = values as Partial<Config<'api'>>;
  if (host === undefined || openAccess !== false || isLoopback(host)) return [];
  if (apiKeys !== undefined || apiKeysFile !== undefined) return [];
  return [
    `HOST is ${JSON.stringify(host)} and there are no API keys, so anybody could use the API: set API_KEYS or API_KEYS_FILE, or OPEN_ACCESS=true if something in front of it checks who comes`,
  ];
}

/** Each worker process has a port of its own, after the one of the process that keeps them. */
function metricsPortProblems(values: Values): string[] {
  const { metricsPort = 0, numWorkerProcesses = 1 } = values as Partial<Config<'worker'>>;
  if (metricsPort === 0 || numWorkerProcesses === 1 || metricsPort + numWorkerProcesses <= 65_535) return [];
  return [
    `METRICS_PORT is ${metricsPort}, expected at most ${65_535 - numWorkerProcesses}: the ${numWorkerProcesses} workers of NUM_WORKER_PROCESSES have the ports after it`,
  ];
}

/** `redis://user:secret@host` with the secret left out: error messages end in logs. */
function maskPassword(text: string): string {
  return text.replace(/^([a-z-]+:\/\/[^:/@]*:).*@/i, '$1***@');
}
