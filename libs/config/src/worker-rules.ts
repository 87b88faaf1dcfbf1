/** Rules between a worker's settings. */
import type { Device } from '@darkroom/core';
import { modelDirectoryProblems } from './model-directories.ts';
import { isCustomModule } from './setting-kinds.ts';

/** Settings that the rules read; undefined if invalid. */
interface WorkerValues {
  executor?: string | undefined;
  upstreamApi?: string | undefined;
  devices?: readonly Device[] | undefined;
  cudaVisibleDevices?: readonly string[] | undefined;
  modelDirs?: readonly string[] | undefined;
}

/** A rule: its variables, its condition, and the problem with each variable that is set (or not set). */
interface Rule {
  variables: readonly string[];
  applies: (values: WorkerValues, isSet: (variable: string) => boolean) => boolean;
  /** The variables must be set; otherwise they must not be. */
  mustBeSet?: true;
  problem: (variable: string, values: WorkerValues) => string;
}

const upstreamVariables = ['UPSTREAM_URL', 'UPSTREAM_API', 'UPSTREAM_KEY', 'UPSTREAM_SLOTS', 'UPSTREAM_WORKFLOW'];
// Not PYTHON: other programs read it too.
const pythonVariables = ['MODULE', 'ENGINE_MEMORY_MB'];
const modelFileVariables = ['MODEL_DIR', 'MODEL_DIRS', 'MODEL_DTYPE', 'LOW_MEMORY', 'SAFETY_CHECKER'];
const stepVariables = ['KV_TOKENS', 'CHECKPOINT_STEPS'];
const deviceVariables = ['DEVICE', 'NUM_THREADS'];

const rules: readonly Rule[] = [
  {
    variables: ['UPSTREAM_URL', 'MODEL_ID'],
    applies: ({ executor }) => executor === 'http',
    mustBeSet: true,
    problem: (variable) => `${variable} is not set, expected one with EXECUTOR=http`,
  },
  {
    variables: ['UPSTREAM_WORKFLOW'],
    applies: ({ executor, upstreamApi }) => executor === 'http' && upstreamApi === 'comfyui',
    mustBeSet: true,
    problem: (variable) => `${variable} is not set, expected one with UPSTREAM_API=comfyui`,
  },
  {
    variables: ['UPSTREAM_WORKFLOW'],
    applies: ({ executor, upstreamApi }) => executor === 'http' && upstreamApi !== 'comfyui',
    problem: (variable, { upstreamApi }) =>
      `${variable} is set and UPSTREAM_API is ${upstreamApi}, expected UPSTREAM_API=comfyui with it`,
  },
  {
    variables: [...modelFileVariables, 'MEMORY_BUDGET_MB', 'SLEEP_AFTER_S', ...stepVariables, ...deviceVariables],
    applies: ({ executor }) => executor === 'http',
    problem: (variable) =>
      `${variable} is set and EXECUTOR is http, expected one of the two: another server runs the model`,
  },
  {
    variables: ['MODULE'],
    applies: ({ executor }) => executor === 'python',
    mustBeSet: true,
    problem: (variable) => `${variable} is not set, expected one with EXECUTOR=python`,
  },
  {
    variables: pythonVariables,
    applies: ({ executor }) => executor !== undefined && executor !== 'python',
    problem: (variable, { executor }) =>
      `${variable} is set and EXECUTOR is ${executor}, expected EXECUTOR=python with it`,
  },
  {
    variables: upstreamVariables,
    applies: ({ executor }) => executor !== undefined && executor !== 'http',
    problem: (variable, { executor }) =>
      `${variable} is set and EXECUTOR is ${executor}, expected EXECUTOR=http with it`,
  },
  {
    variables: [...modelFileVariables, 'MEMORY_BUDGET_MB', 'KV_TOKENS'].filter((name) => name !== 'LOW_MEMORY'),
    applies: ({ executor = 'process' }) => executor === 'python' || isCustomModule(executor),
    problem: moduleProblem,
  },
  {
    variables: ['CHECKPOINT_STEPS'],
    applies: ({ executor = 'process' }) => isCustomModule(executor),
    problem: moduleProblem,
  },
  {
    variables: ['MODEL_DIR', 'MODEL_ID'],
    applies: ({ executor }, isSet) => executor === 'process' && isSet('MODEL_DIRS'),
    problem: (variable) =>
      `${variable} is set and MODEL_DIRS is too, expected one of the two: each directory of MODEL_DIRS is a model under its own name`,
  },
  {
    variables: ['MEMORY_BUDGET_MB'],
    applies: ({ executor }, isSet) => executor === 'process' && !isSet('MODEL_DIRS'),
    problem: (variable) =>
      `${variable} is set and MODEL_DIRS is not, expected both: a single model has no other models to share a budget with`,
  },
];

function moduleProblem(variable: string, { executor }: WorkerValues): string {
  return `${variable} is set and EXECUTOR is ${executor}, expected one of the two: the module brings its own model`;
}

/** Returns problems with settings that have no effect in combination. */
export function* workerProblems(values: WorkerValues, isSet: (variable: string) => boolean): Generator<string> {
  if (values.executor === undefined) return;
  for (const { variables, applies, mustBeSet = false, problem } of rules)
    if (applies(values, isSet))
      for (const variable of variables) if (isSet(variable) !== mustBeSet) yield problem(variable, values);
  yield* deviceProblems(values);
  if (values.executor === 'process') yield* modelDirectoryProblems(values.modelDirs ?? []);
}

/** CUDA numbers only the visible GPUs. With a leading `cuda`, each process gets one of them, so any number is valid. */
function* deviceProblems({ devices = [], cudaVisibleDevices: visible }: WorkerValues): Generator<string> {
  if (devices[0] === 'cuda') return;
  const count = visible?.length ?? Infinity;
  const beyond = devices.find((device) => Number(/^cuda:(\d+)$/.exec(device)?.[1] ?? 0) >= count);
  if (beyond !== undefined)
    yield `DEVICE has ${beyond} and CUDA_VISIBLE_DEVICES names ${count}, expected a number below that: CUDA counts from 0 those that may be used`;
}
