import { once } from 'node:events';
import {
  answerFlags,
  type AppName,
  type Config,
  ConfigError,
  loadConfig,
  exportFlagsToEnvironment,
  readFlags,
} from '@darkroom/config';
import { type Logger, createLogger } from '../logging/logger.ts';
import { Metrics } from '../metrics/metrics.ts';
import { MetricsServer } from './metrics-server.ts';
import { createReadiness, type Readiness } from '../metrics/readiness.ts';
import type { Service } from './service.ts';
import { startTracing } from '../tracing/tracing.ts';

export interface MainContext<App extends AppName> {
  config: Config<App>;
  log: Logger;
  /** Served on `METRICS_PORT`, when that is set. */
  metrics: Metrics;
  /** Its `check` decides whether a started process is ready. */
  readiness: Readiness;
  /** Aborted when the process must stop; ends work that is still part of the start. */
  stopSignal: AbortSignal;
}

/** Exit code for invalid settings, so that a supervisor does not restart the process (EX_CONFIG of sysexits.h). */
export const invalidSettingsExitCode = 78;

/** Timeout of an orderly stop, after which the process exits anyway, ms. */
export const maxStopMs = 20_000;

/** State shared by the apps of one process, as with `npm start`; it exits when all have stopped. */
const shared: { stopping?: AbortSignal; apps: number; starting: number; left: number } = {
  apps: 0,
  starting: 0,
  left: 0,
};

/**
 * Implements an app's `main.ts`: reads settings, creates the logger, builds and starts the service, and stops it on
 * SIGTERM, SIGINT or when its supervisor exits. A second signal or an uncaught error exits at once. Sends `ready` over
 * IPC once started. Apps that share a process share all of this; their metrics are on consecutive ports.
 */
export async function runMain<App extends AppName>(
  app: App,
  build: (context: MainContext<App>) => Service | Promise<Service>,
  { stopTimeoutMs = maxStopMs }: { stopTimeoutMs?: number } = {},
): Promise<void> {
  const config = readConfigOrExit(app);
  // Every app has the common settings; TypeScript cannot infer that for a generic App.
  const { logLevel, logFile, tracesUrl } = config as Config<AppName>;
  const log = createLogger({ app, level: logLevel, file: logFile });
  shared.stopping ??= watchProcess(log);
  const stopping = deriveSignal(shared.stopping);
  let service: Service | undefined;
  stopping.addEventListener('abort', () => exitAfter(stopTimeoutMs, log));
  const { metrics, readiness, server } = measure(app, config, log);
  shared.apps += 1;
  shared.starting += 1;
  shared.left += 1;
  try {
    const stopTracing = tracesUrl === undefined ? undefined : await startTracing(app, log);
    // First and last, so that start and stop can be observed.
    await server?.start();
    service = await build({ config, log, metrics, readiness, stopSignal: stopping });
    if (!stopping.aborted) await start(service, stopping);
    if (!stopping.aborted) {
      readiness.isStarted = true;
      log.info('ready');
      shared.starting -= 1;
      // A send on a closed channel is followed by `disconnect`, which is handled.
      if (shared.starting === 0) process.send?.('ready', undefined, undefined, () => {});
      await once(stopping, 'abort');
    }
    readiness.isStarted = false;
    await service.stop();
    await server?.stop();
    await stopTracing?.();
  } catch (error) {
    log.fatal({ err: error }, service ? 'could not start or stop cleanly' : 'could not be set up');
    process.exit(1);
  }
  log.info('stopped');
  shared.left -= 1;
  if (shared.left === 0) process.exit(0);
}

/** Keeps the process running until a stop request or an uncaught error. */
function watchProcess(log: Logger): AbortSignal {
  exitOnUncaughtErrors(log);
  // A service may temporarily hold nothing that keeps Node's event loop alive.
  setInterval(() => {}, 2 ** 30);
  return onStopRequest(log);
}

/** Derives a signal for one app: listeners of all apps on one signal would exceed Node's warning limit. */
function deriveSignal(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  signal.addEventListener('abort', () => controller.abort(), { once: true });
  return controller.signal;
}

/** Creates an app's metrics and their server, if a port is configured. */
function measure(app: AppName, { metricsPort, metricsHost: host }: Config<AppName>, log: Logger) {
  const port = metricsPort && metricsPort + shared.apps;
  const metrics = new Metrics({ app, log, withProcess: metricsPort !== undefined && shared.apps === 0 });
  const readiness = createReadiness(metrics);
  const server = port === undefined ? undefined : new MetricsServer({ metrics, readiness, host, port, log });
  return { metrics, readiness, server };
}

function readConfigOrExit<App extends AppName>(app: App): Config<App> {
  const flags = readFlags([app], process.argv.slice(2));
  try {
    const answer = answerFlags([app], `node apps/${app}/dist/main.js`, flags);
    if (answer === undefined) {
      const config = loadConfig(app, undefined, flags);
      exportFlagsToEnvironment(flags);
      return config;
    }
    process.stdout.write(answer);
    process.exit(0);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${app}: ${error.message}\n`);
    process.exit(invalidSettingsExitCode);
  }
}

function exitOnUncaughtErrors(log: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event);
      process.exit(1);
    });
}

/** Returns a signal that aborts on the first stop request; a second one exits the process. */
function onStopRequest(log: Logger): AbortSignal {
  const controller = new AbortController();
  const request = (reason: string, exitCode: number): void => {
    if (controller.signal.aborted) process.exit(exitCode);
    log.info({ reason }, 'stopping');
    controller.abort();
  };
  process.on('SIGINT', () => request('SIGINT', 130));
  process.on('SIGTERM', () => request('SIGTERM', 143));
  // A supervisor that exits after it has asked us to stop is not a second request.
  const onSupervisorGone = (): void => {
    if (!controller.signal.aborted) request('supervisor exited', 1);
  };
  process.on('disconnect', onSupervisorGone);
  // It may have exited while modules were loaded. Deferred, so that all listeners can be registered first.
  if (process.send !== undefined && !process.connected) setImmediate(onSupervisorGone);
  return controller.signal;
}

/** Starts the service. An error after a stop request is ignored: the start was interrupted. */
function start(service: Service, stopping: AbortSignal): Promise<void> {
  return service.start().catch((error: unknown) => {
    if (!stopping.aborted) throw error;
  });
}

function exitAfter(stopTimeoutMs: number, log: Logger): void {
  setTimeout(() => {
    log.error({ stop_timeout_ms: stopTimeoutMs }, 'did not stop in time');
    process.exit(1);
  }, stopTimeoutMs).unref();
}
