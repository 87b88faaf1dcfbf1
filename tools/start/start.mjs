import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseAddress } from './address.mjs';
import { build, installDependencies } from './dependencies.mjs';
import { untilHealthy } from './health.mjs';
import { takeInstanceLock } from './instance-lock.mjs';
import { Part } from './part.mjs';
import { provideRedis } from './redis.mjs';
import { SetupError, say } from './say.mjs';
import { System } from './system.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
/** In the order they are stopped in: first nothing new comes in, then nothing new is handed out, then work ends. */
const apps = ['api', 'batch-former', 'worker', 'webhook-sender', 'janitor'];
/** In the order of their metrics ports: the worker may be several processes and takes those that follow. */
const ports = ['api', 'batch-former', 'webhook-sender', 'janitor', 'worker'];

export async function start() {
  // Whoever read our output may be gone before we are.
  process.stdout.on('error', () => {});
  try {
    const giveLockBack = takeInstanceLock(join(root, '.darkroom/start.lock'));
    process.on('exit', giveLockBack);
    await run();
    process.exit(0);
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    process.exit(1);
  }
}

async function run() {
  await installDependencies(root);
  await build(root);
  const { host, port, metricsPort } = await readSettings();
  if (metricsPort + apps.length - 1 > 65_535)
    throw new SetupError(
      `METRICS_PORT is ${metricsPort}, and each of ${apps.length} processes needs one from there on.`,
    );
  const address = await chooseAddress({ host, port });
  const redis = await provideRedis({ directory: join(root, '.darkroom/redis') });
  const shared = { ...process.env, REDIS_URL: redis.url, PORT: String(address.port) };
  const parts = apps.map((name) => {
    const env = { ...shared, ...metricsPortOf(metricsPort, ports.indexOf(name)) };
    return new Part({ name, script: join(root, `apps/${name}/dist/main.js`), cwd: root, env });
  });
  const system = new System(redis.part ? [...parts, redis.part] : parts);
  stopWithNpm(system);
  if (redis.part) await system.startAndWait(redis.part);
  if (!system.isStopping) for (const part of parts) part.start();
  const stopped = new AbortController();
  const greeted = untilHealthy(address.url, stopped.signal).then(
    () => greet(address.url),
    () => {},
  );
  await system.untilStopped();
  stopped.abort();
  await greeted;
  say('stopped');
}

/** The address of the API, and every mistake in the settings of any app before anything is started. */
async function readSettings() {
  // Only now, because it has just been built.
  const { ConfigError, appNames, loadConfig } = await import('@darkroom/config');
  const problems = new Set();
  for (const app of appNames) {
    try {
      loadConfig(app);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  if (problems.size > 0) throw new SetupError(new ConfigError([...problems]).message);
  return loadConfig('api');
}

/** All run on one machine, so each gets a port of its own: the one that is set, and those after it; 0 stays 0. */
function metricsPortOf(first, position) {
  return first ? { METRICS_PORT: String(first + position) } : {};
}

/** npm that is killed tells its script nothing; the script notices that its parent has changed. */
function stopWithNpm(system) {
  if (process.env.npm_lifecycle_event !== 'start') return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    system.requestStop();
  }, 1000);
  watch.unref();
}

function greet(url) {
  const body = '{"prompt":"a red apple on a white background"}';
  say(`running at ${url} (open it in a browser; API reference: ${url}/docs; Ctrl-C stops). Try:`);
  console.log(`\n  curl -s ${url}/v1/predict -H 'content-type: application/json' -d '${body}'\n`);
}
