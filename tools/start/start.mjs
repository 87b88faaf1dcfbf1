import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { provideAccessKey } from './access-key.mjs';
import { chooseAddress } from './address.mjs';
import { buildWhatChanged, installDependencies } from './dependencies.mjs';
import { isCheckout, root, startCommand } from './installation.mjs';
import { takeInstanceLock } from './instance-lock.mjs';
import { Part } from './part.mjs';
import { hasCustomModel, partsOf, ports } from './parts.mjs';
import { provideRedis } from './redis.mjs';
import { SetupError, say } from './say.mjs';
import { secondWorker } from './second-worker.mjs';
import { System } from './system.mjs';

const printFlags = ['--help', '-h', '--version', '--print-config'];

/** State of this system: data of Redis, the lock, the key. In the current directory; a checkout has its own. */
const state = () => join(process.cwd(), '.darkroom');

export async function start() {
  if (isCheckout) process.chdir(root);
  // The reader of our output may have ended: ignore write errors.
  process.stdout.on('error', () => {});
  try {
    // Commands that only print something may run while the system runs.
    const isPrintOnly = process.argv.slice(2).some((word) => printFlags.includes(word));
    if (!isPrintOnly) process.on('exit', takeInstanceLock(join(state(), 'start.lock')));
    await run();
    process.exit(0);
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    process.exit(1);
  }
}

async function run() {
  if (isCheckout) {
    await installDependencies(root);
    await buildWhatChanged(root);
  }
  const settings = await readSettings(process.argv.slice(2));
  if (settings === undefined) return;
  const { host, port, metricsPort, key, wanted } = settings;
  if (metricsPort + ports - 1 > 65_535)
    throw new SetupError(
      `METRICS_PORT is ${metricsPort}, expected at most ${65_536 - ports}: ${ports} ports in a row are needed.`,
    );
  const address = await chooseAddress({ host, port });
  const redis = await provideRedis({ directory: join(state(), 'redis') });
  const shared = { REDIS_URL: redis.url, PORT: String(address.port) };
  const parts = wanted.map((options) => new Part({ ...options, env: { ...options.env, ...shared } }));
  const system = new System(redis.part ? [...parts, redis.part] : parts);
  stopWithNpm(system);
  if (redis.part) await system.startAndWait(redis.part);
  if (!system.isStopping) for (const part of parts) part.start();
  void Promise.all(parts.map(({ ready }) => ready)).then(() => system.isStopping || greet(address.url, redis, key));
  await system.untilStopped();
  say('stopped');
}

/**
 * Validates the settings of all apps before any process starts. Flags become environment variables.
 * Returns the settings of the API and the parts to start, or undefined if a flag only printed something.
 */
async function readSettings(words) {
  // Import here: the package has just been built.
  const config = await import('@darkroom/config');
  const { appNames, ConfigError, loadConfig } = config;
  const flags = config.readFlags(appNames, words);
  const file = join(state(), 'key');
  const environment = { ...process.env, ...flags.values };
  if (!environment.REDIS_URL) setDefaults();
  const key = provideAccessKey({ file, isLoopback: config.isLoopback, environment });
  if (key !== undefined) process.env.API_KEYS = `owner:${key}`;
  const problems = new Set();
  for (const app of appNames) {
    try {
      loadConfig(app, process.env, flags);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  if (problems.size > 0) throw new SetupError(new ConfigError([...problems]).message);
  const usage = isCheckout ? `${startCommand} --` : startCommand;
  const answer = config.answerFlags(appNames, usage, flags);
  if (answer !== undefined) {
    process.stdout.write(answer);
    return undefined;
  }
  config.exportFlagsToEnvironment(flags);
  const api = loadConfig('api');
  const wanted = partsOf({ root, environment: process.env, metricsPort: api.metricsPort });
  const problem = config.modelDirProblem(loadConfig('worker', wanted.at(-1).env));
  if (problem !== undefined) throw new SetupError(problem);
  return { ...api, key, wanted };
}

/**
 * Sets the defaults of a system with its own Redis: results stay for a day, with images on disk instead of in memory.
 * An empty variable counts as set: then the default of the processes applies.
 */
function setDefaults() {
  process.env.BYTES_URL ??= pathToFileURL(join(state(), 'bytes')).href;
  process.env.RESULT_TTL_S ??= String(24 * 3600);
}

/**
 * Stops the system when npm or npx is killed: they send no signal then, so watch for a change of the parent process.
 */
function stopWithNpm(system) {
  if (!['start', 'npx'].includes(process.env.npm_lifecycle_event)) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    system.requestStop();
  }, 1000);
  watch.unref();
}

function greet(url, redis, key) {
  const header = key === undefined ? '' : ` -H 'authorization: Bearer ${key}'`;
  const line = `curl -s ${url}/v1/predict${header} -H 'content-type: application/json'`;
  say(`running at ${url} (open it in a browser; API reference: ${url}/docs; Ctrl-C stops). Try:`);
  console.log(`\n  ${line} -d '{"prompt":"a red apple on a white background"}'`);
  // A custom model has no bundled text model beside it.
  if (!hasCustomModel(process.env)) {
    const messages = '[{"role":"user","content":"something sweet for a birthday party"}]';
    console.log(`  ${line} -H 'prefer: wait=20' -d '{"model":"emoji-writer","messages":${messages}}'`);
  }
  if (key !== undefined)
    say(`other machines reach this API, so it needs a key, which the page asks for: ${key} (kept in ${state()}/key)`);
  if (!isCheckout) return;
  say('another worker, from another terminal in this directory:');
  console.log(`\n  ${secondWorker(redis, process.env)}\n`);
}
