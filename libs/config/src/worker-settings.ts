import { modelDirectories } from './model-directories.ts';
import { readBy } from './setting.ts';
import {
  deviceList,
  dtypeChoice,
  executorChoice,
  headerPassword,
  modelId,
  moduleChoice,
  multipleOf,
  nameList,
  oneOf,
  path,
} from './setting-kinds.ts';
import { plainName, trueOrFalse, upstreamUrl, wholeNumber } from './setting-kinds.ts';

const worker = readBy('worker');
const workerAndModel = readBy('worker', 'model');

/** The part of the table of settings (settings.ts) that only the worker reads. */
export const workerSettings = {
  executor: worker('EXECUTOR', executorChoice, {
    default: 'process',
    doc: 'What runs the model: `process`, an engine in a process of its own; `http`, another server: [upstreams.md](upstreams.md); or a module of your own, such as `./my-executor.mjs`: [executors.md](executors.md).',
  }),
  upstreamUrl: worker('UPSTREAM_URL', upstreamUrl, {
    doc: 'The server behind `EXECUTOR=http`. Nothing is followed to where it redirects.',
  }),
  upstreamApi: worker('UPSTREAM_API', oneOf(['openai', 'llama.cpp']), {
    default: 'openai',
    doc: 'How that server is spoken to.',
  }),
  upstreamKey: worker('UPSTREAM_KEY', headerPassword, {
    doc: 'What it takes as `Authorization: Bearer …`.',
  }),
  upstreamSlots: worker('UPSTREAM_SLOTS', wholeNumber(1, 4096, 'requests'), {
    absent: 'what the server says (`UPSTREAM_API=llama.cpp`), else 8',
    doc: 'Requests that it is sent at once, at most. Several workers may share one server.',
  }),
  modelDir: worker('MODEL_DIR', path, {
    default: 'models/emoji-sd',
    doc: 'The directory of the model: pictures in the diffusers ONNX layout, text in that of Optimum and transformers.js.',
  }),
  modelDirs: worker('MODEL_DIRS', modelDirectories, {
    doc: 'Several models for one worker, in place of `MODEL_DIR`, each under the name of its directory: [models.md](models.md#many-on-one-machine).',
  }),
  memoryBudgetMb: worker('MEMORY_BUDGET_MB', wholeNumber(1, 16_777_216, 'MB'), {
    absent: 'none: all are loaded at the start, and stay',
    doc: 'What the models of `MODEL_DIRS` may take together, of the memory of the GPU if `DEVICE` begins with one. Each is loaded when it is asked for, and those used least lately are freed for others. It is that of each of `NUM_WORKER_PROCESSES`.',
  }),
  coldStartMaxWaitS: worker('COLD_START_MAX_WAIT_S', wholeNumber(0, 86_400, 's'), {
    default: '30',
    doc: 'How long a model of `MODEL_DIRS` waits for room while all that have it are at work. Then the one used least lately takes nothing new, ends what it has, and is freed.',
  }),
  modelId: worker('MODEL_ID', modelId, {
    computed: 'the name of the directory, or of the module of `EXECUTOR`',
    doc: 'The id the model is served under. With `EXECUTOR=http` it must be set: the name that the other server has for it, of `Qwen/Qwen3-0.6B` as `qwen3-0.6b`.',
  }),
  modelDtype: workerAndModel('MODEL_DTYPE', dtypeChoice, {
    default: 'auto',
    doc: 'Which files of the model are loaded, by what their weights are; `auto` takes of each part the first there is of int8, fp32, fp16.',
  }),
  devices: workerAndModel('DEVICE', deviceList, {
    default: 'cpu',
    doc: 'Where the model runs: each part of it on the first device of the list that takes it. The log says on which, and why not on those before it.',
  }),
  isStrictAboutDevice: workerAndModel('STRICT_PROVIDER', trueOrFalse, {
    default: 'false',
    doc: 'With `true` a model that does not run on the first device of `DEVICE` is not loaded, rather than run on the next.',
  }),
  hasLowMemory: workerAndModel('LOW_MEMORY', trueOrFalse, {
    default: 'false',
    doc: 'With `true` text encoders are in memory only while prompts are encoded, and loaded anew for each prompt that is not among the latest.',
  }),
  vaeTileSize: workerAndModel('VAE_TILE_SIZE', wholeNumber(64, 65_536, 'pixels'), {
    default: '1024',
    doc: 'A picture of more pixels than a square of this side is decoded in pieces: less memory, more time.',
  }),
  safetyChecker: workerAndModel('SAFETY_CHECKER', oneOf(['auto', 'off', 'refuse']), {
    default: 'auto',
    doc: 'What is done with the `safety_checker` of a model that has one: `auto` makes pictures black that it finds fault with, and says so; `refuse` ends their requests; `off` does not load it: [models.md](models.md#pictures-that-are-checked).',
  }),
  judge: worker('JUDGE', moduleChoice, {
    absent: 'none: nobody judges',
    doc: 'A module of your own that judges the prompts of pictures before, and pictures after, such as `./my-judge.mjs`: [judges.md](judges.md).',
  }),
  judgeTimeoutS: worker('JUDGE_TIMEOUT_S', wholeNumber(1, 60, 's'), {
    default: '10',
    doc: 'How long a verdict of `JUDGE` may take. A request without one fails.',
  }),
  kvTokens: worker('KV_TOKENS', wholeNumber(1, 100_000_000, 'tokens'), {
    absent: '`BATCH_MAX_SIZE` texts of full length, or what a quarter of the free memory holds',
    doc: 'The room of a worker for text: tokens of prompts and answers that its cache holds at once.',
  }),
  stepTokens: worker('STEP_TOKENS', wholeNumber(1, 65_536, 'tokens'), {
    default: '64',
    doc: 'Tokens of prompts that are read in one step while others write, who wait for it. More reads long prompts faster and makes the others pause longer.',
  }),
  numWorkerProcesses: worker('NUM_WORKER_PROCESSES', wholeNumber(1, 64, 'processes'), {
    absent: 'one for each visible GPU if `DEVICE` begins with `cuda` without a number, else 1',
    doc: 'Workers that one start of the worker runs, with the GPUs dealt out in turn. More than one have their `/metrics` on the ports after `METRICS_PORT`.',
  }),
  cudaVisibleDevices: worker('CUDA_VISIBLE_DEVICES', nameList, {
    absent: 'all of the machine',
    doc: "CUDA's own list of the GPUs that may be used.",
  }),
  numThreads: workerAndModel('NUM_THREADS', wholeNumber(0, 1024, 'threads'), {
    default: '0',
    doc: 'Threads of one operator on the CPU; 0 means one for each core, and one alone for a model of text with less than 20 MB of weights, which more do not make faster.',
  }),
  chunkBytes: worker('CHUNK_BYTES', multipleOf(3, wholeNumber(3, 8_388_608, 'bytes')), {
    default: '409600',
    doc: 'The size of the pieces a picture is stored and streamed in. A multiple of 3, so that the pieces also join up as base64.',
  }),
  pngLevel: worker('PNG_LEVEL', wholeNumber(1, 9), {
    default: '4',
    doc: 'How hard PNG files are compressed. 9 takes seven times as long as 4, and makes them 7 % smaller.',
  }),
  checkpointSteps: worker('CHECKPOINT_STEPS', wholeNumber(0, 1000, 'steps'), {
    default: '10',
    doc: 'A row is saved every so many steps, to be resumed by another worker; 0 turns it off.',
  }),
  workerId: worker('WORKER_ID', plainName, {
    computed: 'the host name and a random part',
    doc: 'The name the worker registers under. Never the same for two that run at once.',
  }),
  sleepAfterS: worker('SLEEP_AFTER_S', wholeNumber(1, 2_592_000, 's'), {
    absent: 'none: it never sleeps by itself',
    doc: 'A worker that has had nothing to do for this long frees the memory of its model. The next request loads it again, and says so.',
  }),
  engineTimeoutS: worker('ENGINE_TIMEOUT_S', wholeNumber(1, 86_400, 's'), {
    default: '60',
    doc: 'An engine that has work and says nothing for this long is killed and started again. Two things give it longer: it may be silent for as long as all its work should take at the pace it had, and for ten of its steps. Before its first step it has ten times this setting.',
  }),
};
