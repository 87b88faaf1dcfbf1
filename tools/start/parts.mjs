import { join, relative } from 'node:path';

/** The bundled models. One worker loads and serves all of them unless the environment names models. */
export const models = ['emoji-sd', 'emoji-writer', 'emoji-writer-diffusion', 'emoji-reader'];

/** The apps of light.mjs. */
export const lightApps = ['api', 'batch-former', 'webhook-sender', 'janitor'];

/**
 * glibc settings: one arena for all threads, and free memory above 128 KiB returns to the system. Otherwise it would
 * keep 40 MB that ONNX Runtime needs only while it loads an image model. Other C libraries ignore these variables.
 */
const allocation = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/**
 * Limits V8's young generation to semi-spaces of 1 MB and to one helper thread. Engines inherit it; the user's flags
 * come last and win.
 */
function nodeOptions({ NODE_OPTIONS = '' }) {
  return `--max-semi-space-size=1 --v8-pool-size=1 ${NODE_OPTIONS}`;
}

/**
 * Returns the processes of the system in the order in which they stop: first admission and scheduling, then workers.
 * Each gets a metrics port: METRICS_PORT and those after it; 0 stays 0.
 *
 * @param root directory of the apps and the bundled models
 * @param environment the launcher's; if it names a model, the worker serves only that one
 * @returns options for `Part`
 */
export function partsOf({ root, environment, metricsPort }) {
  // Relative: MODEL_DIRS separates paths by commas, and the path of the home may contain one.
  const folder = relative(process.cwd(), join(root, 'models'));
  const settings = hasCustomModel(environment) ? {} : { MODEL_DIRS: models.map((model) => join(folder, model)).join() };
  const wanted = [
    ...lightParts(environment),
    // The last port: a worker may start several processes, which use the ports that follow.
    { name: 'worker', script: 'apps/worker/dist/main.js', port: lightApps.length, settings },
  ];
  return wanted.map(({ name, script, port, settings }) => {
    const env = { ...allocation, ...environment, NODE_OPTIONS: nodeOptions(environment), ...settings };
    if (metricsPort) env.METRICS_PORT = String(metricsPort + port);
    return { name, script: join(root, script), env };
  });
}

/** Traces name one service per process, so with tracing each app gets its own process. */
function lightParts({ OTEL_EXPORTER_OTLP_ENDPOINT: traces }) {
  if (traces?.trim()) return lightApps.map((name, port) => ({ name, script: `apps/${name}/dist/main.js`, port }));
  return [{ name: lightApps.join(', '), script: 'tools/start/light.mjs', port: 0 }];
}

/** Number of metrics ports, without those of further worker processes. */
export const ports = lightApps.length + 1;

/** Returns whether the environment names a model, by directory or id, or an executor. */
export function hasCustomModel({ MODEL_DIR, MODEL_DIRS, MODEL_ID, EXECUTOR }) {
  return (
    [MODEL_DIR, MODEL_DIRS, MODEL_ID].some((value) => value?.trim()) ||
    !['', 'process'].includes(EXECUTOR?.trim() ?? '')
  );
}
