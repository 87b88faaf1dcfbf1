/** Which of a worker's settings do not go together. */
import type { Device } from '@darkroom/core';
import { modelDirectoryProblems } from './model-directories.ts';
import { isOwnModule } from './setting-kinds.ts';

/** What rules are about; undefined what was refused already. */
interface WorkerValues {
  executor?: string | undefined;
  devices?: readonly Device[] | undefined;
  cudaVisibleDevices?: readonly string[] | undefined;
  modelDirs?: readonly string[] | undefined;
  judgeTimeoutS?: number | undefined;
  engineTimeoutS?: number | undefined;
}

/** One row: the settings it is about, where it holds, and what is wrong with each that is set there (or that is not). */
interface Rule {
  variables: readonly string[];
  holds: (values: WorkerValues, isSet: (variable: string) => boolean) => boolean;
  /** They must be set, rather than must not. */
  areNeeded?: true;
  problem: (variable: string, values: WorkerValues) => string;
}

const ofUpstreams = ['UPSTREAM_URL', 'UPSTREAM_API', 'UPSTREAM_KEY', 'UPSTREAM_SLOTS'];
const ofModelFiles = ['MODEL_DIR', 'MODEL_DIRS', 'MODEL_DTYPE', 'LOW_MEMORY', 'VAE_TILE_SIZE', 'SAFETY_CHECKER'];
const ofRoom = ['MEMORY_BUDGET_MB', 'COLD_START_MAX_WAIT_S'];
const ofSteps = ['KV_TOKENS', 'STEP_TOKENS', 'CHECKPOINT_STEPS'];
const ofDevices = ['DEVICE', 'STRICT_PROVIDER', 'NUM_THREADS'];

const rules: readonly Rule[] = [
  {
    variables: ['UPSTREAM_URL', 'MODEL_ID'],
    holds: ({ executor }) => executor === 'http',
    areNeeded: true,
    problem: (variable) => `${variable} is not set, expected one with EXECUTOR=http`,
  },
  {
    variables: [...ofModelFiles, ...ofRoom, 'SLEEP_AFTER_S', ...ofSteps, ...ofDevices],
    holds: ({ executor }) => executor === 'http',
    problem: (variable) =>
      `${variable} is set and EXECUTOR is http, expected one of the two: another server runs the model`,
  },
  {
    variables: ofUpstreams,
    holds: ({ executor }) => executor !== undefined && executor !== 'http',
    problem: (variable, { executor }) =>
      `${variable} is set and EXECUTOR is ${executor}, expected EXECUTOR=http with it`,
  },
  {
    variables: [...ofModelFiles, ...ofRoom, ...ofSteps, 'STRICT_PROVIDER'].filter((name) => name !== 'LOW_MEMORY'),
    holds: ({ executor = 'process' }) => isOwnModule(executor),
    problem: (variable, { executor }) =>
      `${variable} is set and EXECUTOR is ${executor}, expected one of the two: the module brings its own model`,
  },
  {
    variables: ['MODEL_DIR', 'MODEL_ID'],
    holds: ({ executor }, isSet) => executor === 'process' && isSet('MODEL_DIRS'),
    problem: (variable) =>
      `${variable} is set and MODEL_DIRS is too, expected one of the two: each directory of MODEL_DIRS is a model under its own name`,
  },
  {
    variables: ['MEMORY_BUDGET_MB'],
    holds: ({ executor }, isSet) => executor === 'process' && !isSet('MODEL_DIRS'),
    problem: (variable) =>
      `${variable} is set and MODEL_DIRS is not, expected both: one model has nobody to make room for`,
  },
  {
    variables: ['COLD_START_MAX_WAIT_S'],
    holds: ({ executor }, isSet) => executor === 'process' && !isSet('MEMORY_BUDGET_MB'),
    problem: (variable) =>
      `${variable} is set and MEMORY_BUDGET_MB is not, expected both: without a budget no model waits for room`,
  },
  {
    variables: ['JUDGE'],
    // While a verdict is due, nothing is heard of the engine.
    holds: ({ judgeTimeoutS = 0, engineTimeoutS = Infinity }) => engineTimeoutS <= judgeTimeoutS,
    problem: (variable, { judgeTimeoutS, engineTimeoutS }) =>
      `${variable} is set and ENGINE_TIMEOUT_S is ${engineTimeoutS}, expected more than JUDGE_TIMEOUT_S, which is ${judgeTimeoutS}: a judge that thinks is not an engine that hangs`,
  },
];

/** What a worker reads in one case is an error in another: nothing would come of it. */
export function* workerProblems(values: WorkerValues, isSet: (variable: string) => boolean): Generator<string> {
  if (values.executor === undefined) return;
  for (const { variables, holds, areNeeded = false, problem } of rules)
    if (holds(values, isSet))
      for (const variable of variables) if (isSet(variable) !== areNeeded) yield problem(variable, values);
  yield* deviceProblems(values);
  if (values.executor === 'process') yield* modelDirectoryProblems(values.modelDirs ?? []);
}

/** CUDA counts only those that may be used. Where `cuda` comes first they are dealt out to processes, and each has one. */
function* deviceProblems({ devices = [], cudaVisibleDevices: visible }: WorkerValues): Generator<string> {
  if (devices[0] === 'cuda') return;
  const count = visible?.length ?? Infinity;
  const beyond = devices.find((device) => Number(/^cuda:(\d+)$/.exec(device)?.[1] ?? 0) >= count);
  if (beyond !== undefined)
    yield `DEVICE has ${beyond} and CUDA_VISIBLE_DEVICES names ${count}, expected a number below that: CUDA counts from 0 those that may be used`;
}
