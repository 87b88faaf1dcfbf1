import { join } from 'node:path';

/** The models in the box, which one worker serves: where none is named, all of them are in memory. */
const models = ['emoji-sd', 'emoji-writer', 'emoji-writer-diffusion'];

/** Those of light.mjs. */
const lightApps = ['api', 'batch-former', 'webhook-sender', 'janitor'];

/**
 * Of what is free, glibc keeps one pool, not one for each thread, and nothing larger than 128 KiB: of what ONNX Runtime needs while
 * it loads a model of pictures, it would keep 40 MB. Other libraries do not read these.
 */
const allocation = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/** V8 collects what is young after 1 MB, by one thread. Engines inherit that; the last of two flags wins. */
function nodeOptions({ NODE_OPTIONS = '' }) {
  return `--max-semi-space-size=1 --v8-pool-size=1 ${NODE_OPTIONS}`;
}

/**
 * What is to run, in the order it is stopped in: first nothing new comes in and nothing is handed out, then work ends.
 * All run on one machine, so each gets a port for its metrics: the one that is set, and those after it; 0 stays 0.
 *
 * @param environment of whoever started us. With a model of its own the worker serves that one and no other.
 * @returns options for `Part`
 */
export function partsOf({ root, environment, metricsPort }) {
  const settings = hasOwnModel(environment) ? {} : { MODEL_DIRS: models.map((model) => `models/${model}`).join() };
  const wanted = [
    ...lightParts(environment),
    // May be several processes, and takes the ports that follow.
    { name: 'worker', script: 'apps/worker/dist/main.js', port: lightApps.length, settings },
  ];
  return wanted.map(({ name, script, port, settings }) => {
    const env = { ...allocation, ...environment, NODE_OPTIONS: nodeOptions(environment), ...settings };
    if (metricsPort) env.METRICS_PORT = String(metricsPort + port);
    return { name, script: join(root, script), cwd: root, env };
  });
}

/** A process has one name in traces, so whoever wants these gets one for each. */
function lightParts({ OTEL_EXPORTER_OTLP_ENDPOINT: traces }) {
  if (traces?.trim()) return lightApps.map((name, port) => ({ name, script: `apps/${name}/dist/main.js`, port }));
  return [{ name: lightApps.join(', '), script: 'tools/start/light.mjs', port: 0 }];
}

/** Ports for metrics that all of these take, but for processes that a worker starts. */
export const ports = lightApps.length + 1;

/** Whether somebody has said which model there is: by its directory or its name, or that something else runs it. */
export function hasOwnModel({ MODEL_DIR, MODEL_DIRS, MODEL_ID, EXECUTOR }) {
  return (
    [MODEL_DIR, MODEL_DIRS, MODEL_ID].some((value) => value?.trim()) ||
    !['', 'process'].includes(EXECUTOR?.trim() ?? '')
  );
}
