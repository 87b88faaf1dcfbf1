import { once } from 'node:events';
import { answerFlags, type AppName, type Config, ConfigError, loadConfig, passOn, readFlags } from '@darkroom/config';
import { type Logger, createLogger } from '../logging/logger.ts';
import { Metrics } from '../metrics/metrics.ts';
import { MetricsServer } from '../metrics/metrics-server.ts';
import { createReadiness, type Readiness } from '../metrics/readiness.ts';
import type { Service } from './service.ts';
import { startTracing } from '../tracing/tracing.ts';

export interface MainContext<App extends AppName> {
  config: Config<App>;
  log: Logger;
  /** Served on `METRICS_PORT`, when that is set. */
  metrics: Metrics;
  /** Says whether the process does its work, beyond having started. */
  readiness: Readiness;
  /** Aborts when the process is asked to stop, for what has to end while still starting. */
  stopSignal: AbortSignal;
}

/** Says that the settings are wrong and starting again will not help (EX_CONFIG of sysexits.h). */
export const exitCodeOfWrongSettings = 78;

/** How long an orderly stop may take; then the process ends anyway. */
export const longestStopMs = 20_000;

/** Of this process: several apps may share it, as with `npm start`. It ends when all have stopped. */
const shared: { stopping?: AbortSignal; apps: number; starting: number; left: number } = {
  apps: 0,
  starting: 0,
  left: 0,
};

/**
 * The whole of an app's `main.ts`: reads its settings, those on the command line first, makes its logger, builds and starts its service, and stops it
 * once on SIGTERM, SIGINT or when the supervisor that forked it is gone. A second signal ends the process at once; so
 * does an error that nobody caught (exit code 1). A supervisor is told `ready` over IPC when the service has started. Apps
 * that share a process share all of that, and the second's metrics are at the port behind the first's.
 */
export async function runMain<App extends AppName>(
  app: App,
  build: (context: MainContext<App>) => Service | Promise<Service>,
  { stopTimeoutMs = longestStopMs }: { stopTimeoutMs?: number } = {},
): Promise<void> {
  const config = readConfigOrExit(app);
  // Every app has the settings that all share; TypeScript does not resolve that for an App that is still open.
  const { logLevel, logFile, tracesUrl } = config as Config<AppName>;
  const log = createLogger({ app, level: logLevel, file: logFile });
  shared.stopping ??= watchProcess(log);
  const stopping = following(shared.stopping);
  let service: Service | undefined;
  stopping.addEventListener('abort', () => exitAfter(stopTimeoutMs, log));
  const { metrics, readiness, server } = measure(app, config, log);
  shared.apps += 1;
  shared.starting += 1;
  shared.left += 1;
  try {
    const stopTracing = tracesUrl === undefined ? undefined : await startTracing(app, log);
    // Before everything else, and till the end: starting and stopping are what one wants to watch.
    await server?.start();
    service = await build({ config, log, metrics, readiness, stopSignal: stopping });
    if (!stopping.aborted) await start(service, stopping);
    if (!stopping.aborted) {
      readiness.isStarted = true;
      log.info('ready');
      shared.starting -= 1;
      // A send that finds the channel closed is followed by `disconnect`, which says all there is to say.
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

/** Has the process run until it is asked to stop, or something goes wrong. */
function watchProcess(log: Logger): AbortSignal {
  exitOnUncaughtErrors(log);
  // A service may for a while hold nothing that keeps Node running, and must not end by that.
  setInterval(() => {}, 2 ** 30);
  return onStopRequest(log);
}

/** A signal of an app's own: with those of all apps, one would have more listeners than Node takes for sound. */
function following(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  signal.addEventListener('abort', () => controller.abort(), { once: true });
  return controller.signal;
}

/** What is measured of an app, and where that is served, if anywhere. */
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
      passOn(flags);
      return config;
    }
    process.stdout.write(answer);
    process.exit(0);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${app}: ${error.message}\n`);
    process.exit(exitCodeOfWrongSettings);
  }
}

function exitOnUncaughtErrors(log: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event);
      process.exit(1);
    });
}

/** A signal that aborts at the first request to stop; the second ends the process. */
function onStopRequest(log: Logger): AbortSignal {
  const controller = new AbortController();
  const request = (reason: string, exitCode: number): void => {
    if (controller.signal.aborted) process.exit(exitCode);
    log.info({ reason }, 'stopping');
    controller.abort();
  };
  process.on('SIGINT', () => request('SIGINT', 130));
  process.on('SIGTERM', () => request('SIGTERM', 143));
  // The supervisor may go while we are stopping on its word: that is no second request.
  const onSupervisorGone = (): void => {
    if (!controller.signal.aborted) request('the supervisor is gone', 1);
  };
  process.on('disconnect', onSupervisorGone);
  // It may have gone while our modules were loaded, and that is told once. Later, for all who are yet to listen.
  if (process.send !== undefined && !process.connected) setImmediate(onSupervisorGone);
  return controller.signal;
}

/** A start that fails once it is not wanted any more has given up what it waited for, which is no failure. */
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
