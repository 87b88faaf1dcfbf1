import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseAddress } from './address.mjs';
import { buildWhatChanged, installDependencies } from './dependencies.mjs';
import { takeInstanceLock } from './instance-lock.mjs';
import { Part } from './part.mjs';
import { hasOwnModel, partsOf, ports } from './parts.mjs';
import { provideRedis } from './redis.mjs';
import { SetupError, say } from './say.mjs';
import { System } from './system.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const questions = ['--help', '-h', '--version', '--print-config'];

export async function start() {
  // Whoever read our output may be gone before we are.
  process.stdout.on('error', () => {});
  try {
    // Who only asks may do so while the system runs.
    const isQuestion = process.argv.slice(2).some((word) => questions.includes(word));
    if (!isQuestion) process.on('exit', takeInstanceLock(join(root, '.darkroom/start.lock')));
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
    throw new SetupError(`METRICS_PORT is ${metricsPort}, and ${ports} of them are needed from there on.`);
  const address = await chooseAddress({ host, port });
  const redis = await provideRedis({ directory: join(root, '.darkroom/redis') });
  const shared = { REDIS_URL: redis.url, PORT: String(address.port) };
  const parts = wanted.map((options) => new Part({ ...options, env: { ...options.env, ...shared } }));
  const system = new System(redis.part ? [...parts, redis.part] : parts);
  stopWithNpm(system);
  if (redis.part) await system.startAndWait(redis.part);
  if (!system.isStopping) for (const part of parts) part.start();
  void Promise.all(parts.map(({ ready }) => ready)).then(() => system.isStopping || greet(address.url));
  await system.untilStopped();
  say('stopped');
}

/**
 * The address of the API, and every mistake in the settings of any app before anything is started. What was given as flags is
 * in the environment then. undefined if they only asked for something to be said.
 */
async function readSettings(words) {
  // Only now, because it has just been built.
  const { answerFlags, ConfigError, appNames, loadConfig, passOn, readFlags } = await import('@darkroom/config');
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
  passOn(flags);
  return loadConfig('api');
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
  const line = `curl -s ${url}/v1/predict -H 'content-type: application/json'`;
  say(`running at ${url} (open it in a browser; API reference: ${url}/docs; Ctrl-C stops). Try:`);
  console.log(`\n  ${line} -d '{"prompt":"a red apple on a white background"}'`);
  // With a model of the user's own there is no writer.
  if (hasOwnModel(process.env)) return console.log();
  const messages = '[{"role":"user","content":"something sweet for a birthday party"}]';
  console.log(`  ${line} -H 'prefer: wait=20' -d '{"model":"emoji-writer","messages":${messages}}'\n`);
}
