import { join } from 'node:path';

/**
 * The models in the box, and what each takes: its worker and its engine, one process each, in memory (PSS, at rest, on two
 * cores): see README. Writers are so small that more than one thread makes them slower.
 */
const writers = ['emoji-writer', 'emoji-writer-diffusion'];

/**
 * What is to run, in the order it is stopped in: first nothing new comes in, then nothing new is handed out, then work ends.
 * All run on one machine, so each gets a port for its metrics: the one that is set, and those after it; 0 stays 0.
 *
 * @param environment of whoever started us. With a model of its own there is a worker for that model and no other.
 * @returns options for `Part`; those of workers have `isWorker`
 */
export function partsOf({ root, environment, metricsPort }) {
  const models = hasOwnModel(environment) ? [] : writers;
  const wanted = [
    { app: 'api' },
    { app: 'batch-former' },
    { app: 'worker' },
    ...models.map((model) => ({
      app: 'worker',
      name: `worker of ${model}`,
      settings: writerSettings(environment, model),
    })),
    { app: 'webhook-sender' },
    { app: 'janitor' },
  ];
  // The first worker may be several processes and takes the ports that follow.
  const ports = wanted.toSorted((left, right) => portRank(left) - portRank(right));
  return wanted.map((part) => {
    const { app, name = app, settings = {} } = part;
    const env = { ...environment, ...settings };
    if (metricsPort) env.METRICS_PORT = String(metricsPort + ports.indexOf(part));
    return { name, isWorker: app === 'worker', script: join(root, `apps/${app}/dist/main.js`), cwd: root, env };
  });
}

/** Whether somebody has said which models there are: in directories, or one that something else runs. */
export function hasOwnModel({ MODEL_DIR, MODEL_DIRS, EXECUTOR }) {
  return [MODEL_DIR, MODEL_DIRS].some((value) => value?.trim()) || !['', 'process'].includes(EXECUTOR?.trim() ?? '');
}

function portRank({ app, settings }) {
  if (app === 'worker') return settings === undefined ? 6 : 5;
  return ['api', 'batch-former', 'webhook-sender', 'janitor'].indexOf(app);
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
