import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseAddress } from './address.mjs';
import { buildWhatChanged, installDependencies } from './dependencies.mjs';
import { takeInstanceLock } from './instance-lock.mjs';
import { Part } from './part.mjs';
import { hasCustomModel, partsOf, ports } from './parts.mjs';
import { provideRedis } from './redis.mjs';
import { SetupError, say } from './say.mjs';
import { secondWorker } from './second-worker.mjs';
import { System } from './system.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const printFlags = ['--help', '-h', '--version', '--print-config'];

export async function start() {
  // The reader of our output may have ended: ignore write errors.
  process.stdout.on('error', () => {});
  try {
    // Commands that only print something may run while the system runs.
    const isPrintOnly = process.argv.slice(2).some((word) => printFlags.includes(word));
    if (!isPrintOnly) process.on('exit', takeInstanceLock(join(root, '.darkroom/start.lock')));
    await run();
    process.exit(0);
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    process.exit(1);
  }
}

async function run() {
  await installDependencies(root);
  await buildWhatChanged(root);
  const settings = await readSettings(process.argv.slice(2));
  if (settings === undefined) return;
  const { host, port, metricsPort } = settings;
  const wanted = partsOf({ root, environment: process.env, metricsPort });
  if (metricsPort + ports - 1 > 65_535)
    throw new SetupError(
      `METRICS_PORT is ${metricsPort}, expected at most ${65_536 - ports}: ${ports} ports in a row are needed.`,
    );
  const address = await chooseAddress({ host, port });
  const redis = await provideRedis({ directory: join(root, '.darkroom/redis') });
  const shared = { REDIS_URL: redis.url, PORT: String(address.port) };
  const parts = wanted.map((options) => new Part({ ...options, env: { ...options.env, ...shared } }));
  const system = new System(redis.part ? [...parts, redis.part] : parts);
  stopWithNpm(system);
  if (redis.part) await system.startAndWait(redis.part);
  if (!system.isStopping) for (const part of parts) part.start();
  void Promise.all(parts.map(({ ready }) => ready)).then(() => system.isStopping || greet(address.url, redis));
  await system.untilStopped();
  say('stopped');
}

/**
 * Validates the settings of all apps before any process starts. Flags become environment variables.
 * Returns the API's settings, or undefined if a flag only printed something.
 */
async function readSettings(words) {
  // Import here: the package has just been built.
  const { answerFlags, ConfigError, appNames, loadConfig, modelDirProblem, exportFlagsToEnvironment, readFlags } =
    await import('@darkroom/config');
  const flags = readFlags(appNames, words);
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
  const answer = answerFlags(appNames, 'npm start --', flags);
  if (answer !== undefined) {
    process.stdout.write(answer);
    return undefined;
  }
  exportFlagsToEnvironment(flags);
  const problem = modelDirProblem(loadConfig('worker'));
  if (problem !== undefined) throw new SetupError(problem);
  return loadConfig('api');
}

/** Stops the system when npm is killed: npm sends no signal then, so watch for a change of the parent process. */
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

function greet(url, redis) {
  const line = `curl -s ${url}/v1/predict -H 'content-type: application/json'`;
  say(`running at ${url} (open it in a browser; API reference: ${url}/docs; Ctrl-C stops). Try:`);
  console.log(`\n  ${line} -d '{"prompt":"a red apple on a white background"}'`);
  // A custom model has no bundled text model beside it.
  if (!hasCustomModel(process.env)) {
    const messages = '[{"role":"user","content":"something sweet for a birthday party"}]';
    console.log(`  ${line} -H 'prefer: wait=20' -d '{"model":"emoji-writer","messages":${messages}}'`);
  }
  say('another worker, from another terminal in this directory:');
  console.log(`\n  ${secondWorker(redis, process.env)}\n`);
}
