import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ConfigError } from './config-error.ts';
import { readFlags } from './flags.ts';
import { loadConfig } from './load-config.ts';

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig('worker', environment);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

/** Creates these directories with a model in each. */
function modelsAt(...names: string[]): string {
  const parent = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  for (const name of names) {
    mkdirSync(join(parent, name), { recursive: true });
    writeFileSync(join(parent, name, 'config.json'), '{}');
  }
  return parent;
}

const http = { EXECUTOR: 'http', UPSTREAM_URL: 'http://127.0.0.1:8000/v1', MODEL_ID: 'qwen' };
const otherServer = 'another server runs the model';

describe('settings of one executor with another', () => {
  it.each([
    ['MODEL_DIR', 'models/emoji-sd'],
    ['MODEL_DIRS', 'models/*'],
    ['MODEL_DTYPE', 'fp16'],
    ['LOW_MEMORY', 'true'],
    ['MEMORY_BUDGET_MB', '1000'],
    ['SLEEP_AFTER_S', '60'],
    ['KV_TOKENS', '4096'],
    ['CHECKPOINT_STEPS', '5'],
    ['DEVICE', 'cuda'],
    ['NUM_THREADS', '4'],
  ])('%s is refused with EXECUTOR=http', (variable, value) => {
    const problem = `${variable} is set and EXECUTOR is http, expected one of the two: ${otherServer}`;
    expect(problemsOf({ ...http, [variable]: value })).toEqual([problem]);
    expect(problemsOf({ ...http, [variable]: '' })).toEqual([]);
  });

  it.each([
    ['MODEL_DIR', 'models/emoji-sd'],
    ['MODEL_DIRS', 'models/*'],
    ['MODEL_DTYPE', 'fp16'],
    ['MEMORY_BUDGET_MB', '1000'],
    ['KV_TOKENS', '4096'],
    ['CHECKPOINT_STEPS', '5'],
  ])('%s is refused with a custom module', (variable, value) => {
    expect(problemsOf({ EXECUTOR: './mine.mjs', [variable]: value })).toEqual([
      `${variable} is set and EXECUTOR is ./mine.mjs, expected one of the two: the module brings its own model`,
    ]);
  });

  it.each([
    ['MODEL_DIR', 'models/emoji-sd'],
    ['MEMORY_BUDGET_MB', '1000'],
    ['KV_TOKENS', '4096'],
  ])('%s is refused with an engine in Python', (variable, value) => {
    expect(problemsOf({ EXECUTOR: 'python', MODULE: './mine.py', [variable]: value })).toEqual([
      `${variable} is set and EXECUTOR is python, expected one of the two: the module brings its own model`,
    ]);
  });

  it('takes the id of an engine in Python from its file, and its own settings', () => {
    const rest = { CHECKPOINT_STEPS: '5', PYTHON: '/opt/venv/bin/python', ENGINE_MEMORY_MB: '2000', DEVICE: 'cuda' };
    expect(loadConfig('worker', { EXECUTOR: 'python', MODULE: './my-engine.py', ...rest })).toMatchObject({
      modelId: 'my-engine',
      module: './my-engine.py',
      python: '/opt/venv/bin/python',
      engineMemoryMb: 2000,
    });
  });

  it.each([
    [{ EXECUTOR: 'python' }, 'MODULE is not set, expected one with EXECUTOR=python'],
    [
      { EXECUTOR: 'python', MODULE: './mine.mjs' },
      'MODULE is "./mine.mjs", expected the path of a Python file, which begins with . or / and ends in .py',
    ],
    [{ MODULE: './mine.py' }, 'MODULE is set and EXECUTOR is process, expected EXECUTOR=python with it'],
    [
      { EXECUTOR: './mine.mjs', ENGINE_MEMORY_MB: '100' },
      'ENGINE_MEMORY_MB is set and EXECUTOR is ./mine.mjs, expected EXECUTOR=python with it',
    ],
  ])('names what is missing or has no effect: %j', (environment, problem) => {
    expect(problemsOf(environment)).toContain(problem);
  });

  it('accepts PYTHON without an engine in Python: other programs read it', () => {
    expect(problemsOf({ PYTHON: 'python3' })).toEqual([]);
  });

  it('accepts sleep and device settings with a custom module', () => {
    const rest = { SLEEP_AFTER_S: '60', LOW_MEMORY: 'true', DEVICE: 'cuda', NUM_THREADS: '2' };
    expect(problemsOf({ EXECUTOR: './mine.mjs', ...rest })).toEqual([]);
  });

  it.each([
    ['UPSTREAM_URL', 'http://127.0.0.1:8000'],
    ['UPSTREAM_API', 'llama.cpp'],
    ['UPSTREAM_KEY', 'secret'],
    ['UPSTREAM_SLOTS', '4'],
    ['UPSTREAM_WORKFLOW', 'workflow.json'],
  ])('%s is refused without EXECUTOR=http', (variable, value) => {
    expect(problemsOf({ [variable]: value })).toEqual([
      `${variable} is set and EXECUTOR is process, expected EXECUTOR=http with it`,
    ]);
  });

  it.each(['UPSTREAM_URL', 'MODEL_ID'])('EXECUTOR=http requires %s', (variable) => {
    expect(problemsOf({ ...http, [variable]: '' })).toEqual([
      `${variable} is not set, expected one with EXECUTOR=http`,
    ]);
  });

  it('UPSTREAM_KEY must be valid in a header, and is never printed', () => {
    for (const key of ['schlüssel', 'sk-\u0007', 'sk-🔑', 'sk 1'])
      expect(problemsOf({ ...http, UPSTREAM_KEY: key })).toEqual([
        'UPSTREAM_KEY is invalid (value hidden), expected text of ASCII without spaces',
      ]);
    expect(problemsOf({ ...http, UPSTREAM_KEY: 'sk-!~' })).toEqual([]);
  });

  it('UPSTREAM_WORKFLOW is required with UPSTREAM_API=comfyui, and refused with another', () => {
    const workflow = { UPSTREAM_WORKFLOW: 'workflow.json' };
    expect(problemsOf({ ...http, UPSTREAM_API: 'comfyui' })).toEqual([
      'UPSTREAM_WORKFLOW is not set, expected one with UPSTREAM_API=comfyui',
    ]);
    expect(problemsOf({ ...http, ...workflow })).toEqual([
      'UPSTREAM_WORKFLOW is set and UPSTREAM_API is openai, expected UPSTREAM_API=comfyui with it',
    ]);
    expect(problemsOf({ ...http, ...workflow, UPSTREAM_API: 'comfyui' })).toEqual([]);
  });

  it.each(['openai', 'llama.cpp'])('UPSTREAM_SLOTS limits the requests to a server (%s)', (UPSTREAM_API) => {
    const given = { ...http, UPSTREAM_API };
    expect(loadConfig('worker', { ...given, UPSTREAM_SLOTS: '4' }).upstreamSlots).toBe(4);
    expect(loadConfig('worker', given).upstreamSlots).toBeUndefined();
  });

  it('accepts the commands in docs/upstreams.md', () => {
    const page = readFileSync(new URL('../../../docs/upstreams.md', import.meta.url), 'utf8');
    const commands = [...page.matchAll(/^ *EXECUTOR=http ([^]*?)node apps/gm)].map(([, settings = '']) => settings);
    expect(commands).toHaveLength(6);
    const problems = commands.flatMap((settings) => {
      const entries = settings.match(/\w+=\S+/g)!.map((each) => each.split('=') as [string, string]);
      return problemsOf({ EXECUTOR: 'http', ...Object.fromEntries(entries) });
    });
    expect(problems).toEqual([]);
  });

  it('applies to flags too', () => {
    const words = ['--executor', 'http', '--upstream-url', 'http://127.0.0.1:1', '--model-id', 'qwen'];
    expect(loadConfig('worker', {}, readFlags(['worker'], words))).toMatchObject({ executor: 'http', modelId: 'qwen' });
    expect(() => loadConfig('worker', {}, readFlags(['worker'], [...words, '--device', 'cuda']))).toThrow(
      'DEVICE is set and EXECUTOR is http',
    );
  });
});

describe('several models', () => {
  it('are listed one by one, or by directory', () => {
    const parent = modelsAt('b', 'a', 'more/c');
    rmSync(join(parent, 'b/config.json'));
    writeFileSync(join(parent, 'b/model_index.json'), '{}');
    mkdirSync(join(parent, 'more/.cache'));
    symlinkSync(join(parent, 'more/c'), join(parent, 'more/linked'));
    writeFileSync(join(parent, 'more/README.md'), '');
    const all = `${parent}/a,${parent}/more/*,${parent}/a`;
    expect(loadConfig('worker', { MODEL_DIRS: `${parent}/b, ${parent}/a` }).modelDirs).toEqual([
      join(parent, 'b'),
      join(parent, 'a'),
    ]);
    expect(loadConfig('worker', { MODEL_DIRS: all }).modelDirs).toEqual(
      ['a', 'more/c', 'more/linked'].map((name) => join(parent, name)),
    );
    expect(loadConfig('worker', { MODEL_DIRS: `${parent}/a` })).toMatchObject({ memoryBudgetMb: undefined });
  });

  it('must be models with distinct ids', () => {
    const parent = modelsAt('a', 'more/a', 'A model');
    mkdirSync(join(parent, 'none'));
    mkdirSync(join(parent, 'empty'));
    expect(problemsOf({ MODEL_DIRS: `${parent}/a,${parent}/none` })).toEqual([
      `MODEL_DIRS has "${parent}/none": that directory is empty; expected the directory of a model`,
    ]);
    expect(problemsOf({ MODEL_DIRS: `${parent}/empty/*` })).toEqual([
      `MODEL_DIRS has "${parent}/empty/*", expected directories in ${parent}/empty, and there is none`,
    ]);
    expect(problemsOf({ MODEL_DIRS: `${parent}/a,${parent}/more/a` })).toEqual([
      `MODEL_DIRS has "${parent}/a" and "${parent}/more/a", expected one model of the id a`,
    ]);
    expect(problemsOf({ MODEL_DIRS: `${parent}/A model` })).toEqual([
      expect.stringMatching(/^MODEL_DIRS has ".*A model", expected a name that can be an id: 1 to 64 characters/),
    ]);
    expect(problemsOf({ MODEL_DIRS: 'a,,b' })).toEqual([
      'MODEL_DIRS is "a,,b", expected paths with commas between them, `/*` at the end of one for all directories in it',
    ]);
  });

  it.each([
    ['MODEL_DIR', 'models/emoji-sd'],
    ['MODEL_ID', 'mine'],
  ])('%s is refused with MODEL_DIRS', (variable, value) => {
    const MODEL_DIRS = `${modelsAt('a')}/a`;
    expect(problemsOf({ MODEL_DIRS, [variable]: value })).toEqual([
      `${variable} is set and MODEL_DIRS is too, expected one of the two: each directory of MODEL_DIRS is a model under its own name`,
    ]);
  });

  it('share MEMORY_BUDGET_MB, which is refused for a single model', () => {
    expect(problemsOf({ MEMORY_BUDGET_MB: '100' })).toEqual([
      'MEMORY_BUDGET_MB is set and MODEL_DIRS is not, expected both: a single model has no other models to share a budget with',
    ]);
    const MODEL_DIRS = `${modelsAt('a')}/*`;
    expect(problemsOf({ MODEL_DIRS, MEMORY_BUDGET_MB: '100' })).toEqual([]);
  });

  it('can be combined with several GPUs and with settings of a single model', () => {
    const MODEL_DIRS = `${modelsAt('a')}/*`;
    const rest = { NUM_WORKER_PROCESSES: '2', SLEEP_AFTER_S: '60', KV_TOKENS: '100', DEVICE: 'cuda' };
    expect(problemsOf({ MODEL_DIRS, MEMORY_BUDGET_MB: '100', ...rest })).toEqual([]);
  });
});

it('DEVICE must not name a GPU that CUDA_VISIBLE_DEVICES hides', () => {
  const problem =
    'DEVICE has cuda:2 and CUDA_VISIBLE_DEVICES names 2, expected a number below that: CUDA counts from 0 those that may be used';
  expect(problemsOf({ DEVICE: 'cuda:2,cpu', CUDA_VISIBLE_DEVICES: '4,5' })).toEqual([problem]);
  expect(problemsOf({ DEVICE: 'cuda:1,cpu', CUDA_VISIBLE_DEVICES: '4,5' })).toEqual([]);
  expect(problemsOf({ DEVICE: 'cpu', CUDA_VISIBLE_DEVICES: '4' })).toEqual([]);
});
