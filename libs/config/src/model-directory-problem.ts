import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';

/** Every model has one of these at its top level: image models the first, text models the second. */
export const modelFiles = ['model_index.json', 'config.json'];

const exportHint = 'make an ONNX model of it with tools/export (docs/models.md), or pull one: npm run model -- pull';
const singleFileHint =
  'save it as a directory first (diffusers: StableDiffusionPipeline.from_single_file(…).save_pretrained(…)), then make an ONNX model of that with tools/export (docs/models.md)';
const ggufHint =
  'serve it with llama-server and EXECUTOR=http (docs/upstreams.md), or convert it with tools/export/text.py';

/** Descriptions of single-file models, by extension, with what to do. */
const singleFiles: Readonly<Record<string, readonly [what: string, hint: string]>> = {
  '.safetensors': ['a single file of weights (safetensors)', singleFileHint],
  '.ckpt': ['a checkpoint of PyTorch in a single file', singleFileHint],
  '.pt': ['a checkpoint of PyTorch in a single file', singleFileHint],
  '.pth': ['a checkpoint of PyTorch in a single file', singleFileHint],
  '.bin': ['a checkpoint of PyTorch in a single file', singleFileHint],
  '.gguf': ['a model of llama.cpp (GGUF)', ggufHint],
  '.onnx': [
    'a single ONNX graph',
    'name the directory that it is a part of, with model_index.json or config.json in it',
  ],
};

/**
 * Returns what is wrong with `MODEL_DIR`, in one line; undefined if a worker with these settings may load it. Separate
 * from `loadConfig`, since settings can be checked on a machine without the model.
 */
export function modelDirProblem({
  executor,
  modelDirs,
  modelDir,
}: {
  executor: string;
  modelDirs?: readonly string[] | undefined;
  modelDir: string;
}): string | undefined {
  if (executor !== 'process') return undefined;
  if (modelDirs !== undefined) return modelDirsProblem(modelDirs);
  const problem = modelDirectoryProblem(modelDir);
  return problem === undefined ? undefined : `MODEL_DIR is ${JSON.stringify(modelDir)}: ${problem}`;
}

/** Returns a problem only if none of several models can be loaded: the others are served. */
function modelDirsProblem(directories: readonly string[]): string | undefined {
  const problems = directories.map((directory) => ({ directory, problem: modelDirectoryProblem(directory) }));
  if (problems.some(({ problem }) => problem === undefined)) return undefined;
  const words = problems.map(({ directory, problem }) => `${JSON.stringify(directory)}: ${problem}`);
  return `MODEL_DIRS has ${words.join('; ')}`;
}

/** Returns what is wrong with a model directory and what to do; undefined if it may be a model. */
export function modelDirectoryProblem(path: string): string | undefined {
  const full = resolve(path);
  const stats = statSync(full, { throwIfNoEntry: false });
  if (stats === undefined) return `there is nothing at ${full}; expected the directory of a model${hubHint(path)}`;
  if (stats.isFile()) {
    const [what, hint] = singleFiles[extname(full).toLowerCase()] ?? ['a file', 'expected the directory of a model'];
    return `that is ${what}: ${hint}`;
  }
  if (!stats.isDirectory()) return 'that is neither a file nor a directory; expected the directory of a model';
  return contentsProblem(full);
}

function contentsProblem(directory: string): string | undefined {
  const files = listFiles(directory);
  const hasFile = (...extensions: string[]): boolean => files.some((file) => extensions.includes(extname(file)));
  const models = modelsIn(directory, files);
  if (models.length > 0)
    return `that directory holds models, such as ${models[0]}: name one of them, or set MODEL_DIRS to ${join(directory, '*')}`;
  // The model reader reports what else is missing.
  if (hasFile('.onnx')) return undefined;
  if (hasFile('.gguf')) return `that directory holds a model of llama.cpp (GGUF): ${ggufHint}`;
  const isLaidOut = files.some((file) => modelFiles.includes(basename(file)));
  if (hasFile('.safetensors', '.bin', '.ckpt', '.pt', '.pth')) {
    if (isLaidOut) return `that directory holds a checkpoint of PyTorch, without ONNX files: ${exportHint}`;
    return `that directory holds single files of weights: ${singleFileHint}`;
  }
  if (isLaidOut) return undefined;
  const found = files.length === 0 ? 'is empty' : `has no ${modelFiles.join(' or ')} in it`;
  return `that directory ${found}; expected the directory of a model`;
}

/**
 * Returns the names of subdirectories that are models, if the directory is not a model itself. Parts of a model have a
 * config.json too, but no tokenizer beside it.
 */
function modelsIn(directory: string, files: readonly string[]): string[] {
  if (files.some((file) => modelFiles.includes(file))) return [];
  const marks = ['model_index.json', 'tokenizer.json'];
  return files.filter((file) => marks.includes(basename(file)) && basename(file) !== file).map((file) => dirname(file));
}

/** Lists the files of a directory and its subdirectories, relative; models have no deeper levels. */
function listFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.name.startsWith('.') || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
      return [entry.name];
    return readdirSync(path).map((name) => join(entry.name, name));
  });
}

/** Returns what to do with a name such as `stabilityai/sd-turbo`. */
function hubHint(path: string): string {
  return /^[\w-][\w.-]*\/[\w-][\w.-]*$/.test(path) ? `. A model of the hub: npm run model -- pull ${path}` : '';
}
