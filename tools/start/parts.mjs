import { join } from 'node:path';

/**
 * The models in the box, and what each takes: its worker and its engine, one process each, in memory (PSS, at rest, on two
 * cores): see README. Writers are so small that more than one thread makes them slower.
 */
const writers = ['emoji-writer', 'emoji-writer-diffusion'];

/** Those of light.mjs. */
const lightApps = ['api', 'batch-former', 'webhook-sender', 'janitor'];

/** V8 collects what is young after 1 MB, by one thread. Engines inherit that; the last of two flags wins. */
function nodeOptions({ NODE_OPTIONS = '' }) {
  return `--max-semi-space-size=1 --v8-pool-size=1 ${NODE_OPTIONS}`;
}

/**
 * What is to run, in the order it is stopped in: first nothing new comes in and nothing is handed out, then work ends.
 * All run on one machine, so each gets a port for its metrics: the one that is set, and those after it; 0 stays 0.
 *
 * @param environment of whoever started us. With a model of its own there is a worker for that model and no other.
 * @returns options for `Part`; those of workers have `isWorker`
 */
export function partsOf({ root, environment, metricsPort }) {
  const models = hasOwnModel(environment) ? [] : writers;
  const worker = 'apps/worker/dist/main.js';
  const first = lightApps.length;
  const wanted = [
    ...lightParts(environment),
    // May be several processes, and takes the ports that follow.
    { name: 'worker', script: worker, port: first + models.length },
    ...models.map((model, at) => {
      const settings = writerSettings(environment, model);
      return { name: `worker of ${model}`, script: worker, port: first + at, settings };
    }),
  ];
  return wanted.map(({ name, script, port, settings }) => {
    // At rest, all take a third less memory with these two. glibc keeps one pool of what is free, not one for each thread.
    const env = { MALLOC_ARENA_MAX: '1', ...environment, NODE_OPTIONS: nodeOptions(environment), ...settings };
    if (metricsPort) env.METRICS_PORT = String(metricsPort + port);
    return { name, isWorker: script === worker, script: join(root, script), cwd: root, env };
  });
}

/** A process has one name in traces, so whoever wants these gets one for each. */
function lightParts({ OTEL_EXPORTER_OTLP_ENDPOINT: traces }) {
  if (traces?.trim()) return lightApps.map((name, port) => ({ name, script: `apps/${name}/dist/main.js`, port }));
  return [{ name: lightApps.join(', '), script: 'tools/start/light.mjs', port: 0 }];
}

/** Ports for metrics that all of these take, but for processes that a worker starts. */
export function portsOf(parts) {
  return lightApps.length + parts.filter(({ isWorker }) => isWorker).length;
}

/** Whether somebody has said which models there are: in directories, or one that something else runs. */
export function hasOwnModel({ MODEL_DIR, MODEL_DIRS, EXECUTOR }) {
  return [MODEL_DIR, MODEL_DIRS].some((value) => value?.trim()) || !['', 'process'].includes(EXECUTOR?.trim() ?? '');
}

/** What is set for the worker of pictures is not meant for these; an empty value counts as not set. */
function writerSettings({ NUM_THREADS, WORKER_ID }, model) {
  return {
    MODEL_DIR: `models/${model}`,
    MODEL_ID: '',
    MODEL_DTYPE: '',
    DEVICE: '',
    NUM_WORKER_PROCESSES: '',
    NUM_THREADS: NUM_THREADS || '1',
    WORKER_ID: WORKER_ID ? `${WORKER_ID}-${model}` : '',
  };
}
