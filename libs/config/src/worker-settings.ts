import { modelDirectories } from './model-directories.ts';
import { readBy } from './setting.ts';
import {
  deviceList,
  dtypeChoice,
  executorChoice,
  headerPassword,
  modelId,
  moduleChoice,
  nameList,
  oneOf,
  path,
  program,
  pythonModule,
} from './setting-kinds.ts';
import { plainName, trueOrFalse, upstreamUrl, wholeNumber } from './setting-kinds.ts';

const worker = readBy('worker');
const workerAndModel = readBy('worker', 'model');

/** Settings read only by the worker, part of the table in settings.ts. */
export const workerSettings = {
  executor: worker('EXECUTOR', executorChoice, {
    default: 'process',
    doc: 'Runs the model: `process`, the built-in engine in its own process; `http`, another server: [upstreams.md](upstreams.md); `python`, an engine in Python: [python-engines.md](python-engines.md); or a custom module, such as `./my-executor.mjs`: [executors.md](executors.md).',
  }),
  upstreamUrl: worker('UPSTREAM_URL', upstreamUrl, {
    doc: 'URL of the server for `EXECUTOR=http`. Redirects are not followed.',
  }),
  upstreamApi: worker('UPSTREAM_API', oneOf(['openai', 'llama.cpp', 'comfyui', 'sdcpp']), {
    default: 'openai',
    doc: 'Protocol of that server.',
  }),
  upstreamWorkflow: worker('UPSTREAM_WORKFLOW', path, {
    doc: 'File that describes the workflow to run as a model, for `UPSTREAM_API=comfyui`: [upstreams.md](upstreams.md#comfyui).',
  }),
  upstreamKey: worker('UPSTREAM_KEY', headerPassword, {
    doc: 'Its key, sent as `Authorization: Bearer …`.',
  }),
  upstreamSlots: worker('UPSTREAM_SLOTS', wholeNumber(1, 4096, 'requests'), {
    absent: 'what the server reports (`llama.cpp`), 1 (`comfyui`, `sdcpp`) or 8 (`openai`)',
    doc: 'Max. concurrent requests to that server. Several workers may share one server.',
  }),
  module: worker('MODULE', pythonModule, {
    doc: 'The engine for `EXECUTOR=python`, such as `./pipeline.py`: [python-engines.md](python-engines.md).',
  }),
  python: worker('PYTHON', program, {
    default: 'python3',
    doc: 'Program that runs `MODULE`: Python 3.9 or later with the packages that it needs, such as `/opt/venv/bin/python`.',
  }),
  engineMemoryMb: worker('ENGINE_MEMORY_MB', wholeNumber(64, 16_777_216, 'MB'), {
    absent: 'none',
    doc: 'Max. memory of the process of `MODULE` on Linux, without GPU memory and mapped files (`RLIMIT_DATA`). Beyond it, allocations fail. Also limits threads, since each has a stack of 8 MB.',
  }),
  modelDir: worker('MODEL_DIR', path, {
    default: 'models/emoji-sd',
    doc: 'Directory of the model: diffusers ONNX layout for images, Optimum or transformers.js layout for text.',
  }),
  modelDirs: worker('MODEL_DIRS', modelDirectories, {
    doc: 'Several models in one worker, instead of `MODEL_DIR`, each served under the name of its directory: [serving-models.md](serving-models.md#many-on-one-machine).',
  }),
  memoryBudgetMb: worker('MEMORY_BUDGET_MB', wholeNumber(1, 16_777_216, 'MB'), {
    absent: 'none: all models are loaded at the start and stay in memory',
    doc: 'Memory budget of all models of `MODEL_DIRS` together; GPU memory if `DEVICE` begins with a GPU. Models are loaded on demand, and the least recently used are evicted: [serving-models.md](serving-models.md#many-on-one-machine). Applies to each of `NUM_WORKER_PROCESSES`.',
  }),
  modelId: worker('MODEL_ID', modelId, {
    computed: 'the name of the directory, or of the module of `EXECUTOR` or `MODULE`',
    doc: "Id under which the model is served. Required with `EXECUTOR=http`: the other server's name for it, such as `qwen3-0.6b` for `Qwen/Qwen3-0.6B`.",
  }),
  modelDtype: workerAndModel('MODEL_DTYPE', dtypeChoice, {
    default: 'auto',
    doc: 'Weight type of the files to load; `auto` takes the first available of int8, fp32, fp16 for each part, or of fp16, fp32, int8 if `DEVICE` begins with `cuda`.',
  }),
  devices: workerAndModel('DEVICE', deviceList, {
    default: 'cpu',
    doc: 'Devices in the order of preference: each part of the model runs on the first one that accepts it; with a single one, on that or not at all. The log shows the device, and why earlier ones were refused.',
  }),
  hasLowMemory: workerAndModel('LOW_MEMORY', trueOrFalse, {
    default: 'false',
    doc: 'With `true`, text encoders are in memory only while prompts are encoded, and are loaded again for each prompt that is not cached.',
  }),
  safetyChecker: workerAndModel('SAFETY_CHECKER', oneOf(['auto', 'off', 'refuse']), {
    default: 'auto',
    doc: "Use of a model's `safety_checker`: `auto` blacks out flagged images and reports it; `refuse` fails their requests; `off` does not load it: [image-models.md](image-models.md#images-that-are-checked).",
  }),
  judge: worker('JUDGE', moduleChoice, {
    absent: 'none: no moderation',
    doc: 'Custom moderation module, which checks the prompts and the results of image requests, such as `./my-judge.mjs`: [judges.md](judges.md).',
  }),
  kvTokens: worker('KV_TOKENS', wholeNumber(1, 100_000_000, 'tokens'), {
    absent: '`BATCH_MAX_SIZE` texts of full length, or what a quarter of the free memory holds',
    doc: 'Capacity of a worker for text: tokens of prompts and answers in its KV cache.',
  }),
  numWorkerProcesses: worker('NUM_WORKER_PROCESSES', wholeNumber(1, 64, 'processes'), {
    absent: 'one for each visible GPU if `DEVICE` begins with `cuda` without a number, else 1',
    doc: 'Number of worker processes, with GPUs assigned round robin. If more than one, their `/metrics` are on the ports after `METRICS_PORT`.',
  }),
  cudaVisibleDevices: worker('CUDA_VISIBLE_DEVICES', nameList, {
    absent: 'all of the machine',
    doc: "CUDA's own list of visible GPUs.",
  }),
  numThreads: workerAndModel('NUM_THREADS', wholeNumber(0, 1024, 'threads'), {
    default: '0',
    doc: 'Threads per operator on the CPU; 0 means one per core, or a single one for a text model with less than 20 MB of weights, which more threads do not speed up.',
  }),
  checkpointSteps: worker('CHECKPOINT_STEPS', wholeNumber(0, 1000, 'steps'), {
    default: '10',
    doc: 'Steps between two checkpoints of a row, from which another worker can resume it; 0 turns them off.',
  }),
  workerId: worker('WORKER_ID', plainName, {
    computed: 'the host name and a random part',
    doc: 'Id of the worker; must be unique among running workers.',
  }),
  sleepAfterS: worker('SLEEP_AFTER_S', wholeNumber(1, 2_592_000, 's'), {
    absent: 'none: it never sleeps when idle',
    doc: 'Idle time after which a worker frees the memory of its model. The next request loads it again and reports that in its events.',
  }),
  engineTimeoutS: worker('ENGINE_TIMEOUT_S', wholeNumber(1, 86_400, 's'), {
    default: '60',
    doc: 'An engine that has requests and sends no events for this long is killed and restarted. The timeout is extended to the time that all its requests should take at the measured step time, and to ten steps. Before the first step it is ten times as long.',
  }),
};
