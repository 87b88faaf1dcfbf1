import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { modelDirProblem } from './model-directory-problem.ts';

/** Creates a directory `model` with these files and returns the problem with a path in or beside it. */
function problemWith(files: readonly string[], path = 'model'): string | undefined {
  const parent = mkdtempSync(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  mkdirSync(join(parent, 'model'));
  for (const file of files) {
    mkdirSync(dirname(join(parent, 'model', file)), { recursive: true });
    writeFileSync(join(parent, 'model', file), '');
  }
  return modelDirProblem({ executor: 'process', modelDir: join(parent, path) });
}

it.each<[what: string, files: string[], path: string, problem: RegExp]>([
  [
    'a directory that does not exist',
    [],
    'other',
    /there is nothing at \/.*\/other; expected the directory of a model$/,
  ],
  ['an empty directory', [], 'model', /that directory is empty/],
  ['a directory of something else', ['notes.txt'], 'model', /has no model_index\.json or config\.json in it/],
  [
    'a checkpoint of diffusers for PyTorch',
    ['model_index.json', 'unet/diffusion_pytorch_model.safetensors', 'unet/config.json'],
    'model',
    /holds a checkpoint of PyTorch, without ONNX files: .*tools\/export/,
  ],
  ['a text model for PyTorch', ['config.json', 'model.safetensors'], 'model', /checkpoint of PyTorch.*tools\/export/],
  ['old weights of PyTorch', ['config.json', 'pytorch_model.bin'], 'model', /checkpoint of PyTorch/],
  ['a directory of single files', ['sd15.safetensors'], 'model', /single files of weights: .*from_single_file/],
  ['a directory with a GGUF file', ['a.Q4_0.gguf'], 'model', /GGUF.*llama-server/],
  [
    'a directory of models',
    ['sd/model_index.json', 'sd/unet.onnx', 'writer/tokenizer.json'],
    'model',
    /holds models, such as (?:sd|writer): name one of them, or set MODEL_DIRS to \/.*\/model\/\*$/,
  ],
  ['a .safetensors file', ['sd15.safetensors'], 'model/sd15.safetensors', /single file of weights.*from_single_file/],
  ['a .ckpt file', ['sd15.ckpt'], 'model/sd15.ckpt', /PyTorch in a single file.*from_single_file/],
  ['a .GGUF file', ['a.GGUF'], 'model/a.GGUF', /llama\.cpp \(GGUF\).*llama-server/],
  ['an .onnx file', ['model.onnx'], 'model/model.onnx', /single ONNX graph.*the directory/],
  ['another file', ['notes.txt'], 'model/notes.txt', /that is a file.*expected the directory of a model/],
])('reports what MODEL_DIR contains and what to do, in one line: %s', (_what, files, path, problem) => {
  const said = problemWith(files, path);
  expect(said).toMatch(/^MODEL_DIR is "[^"]+": [^\n]+$/);
  expect(said).toMatch(problem);
});

it.each([
  [['model_index.json', 'unet/model.onnx', 'unet/diffusion_pytorch_model.safetensors']],
  [['config.json', 'onnx/model_int8.onnx']],
  [['config.json']],
])('accepts a directory that may be a model: %j', (files) => expect(problemWith(files)).toBeUndefined());

it('does not check MODEL_DIR when another server or module runs the model', () => {
  expect(modelDirProblem({ executor: 'http', modelDir: '/nowhere' })).toBeUndefined();
});

it('says of MODEL_DIRS what each is, if a worker can serve none of them', () => {
  const parent = mkdtempSync(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const [torch, gguf, good] = ['torch', 'gguf', 'good'].map((name) => join(parent, name)) as [string, string, string];
  for (const file of [
    'torch/config.json',
    'torch/model.safetensors',
    'gguf/config.json',
    'gguf/a.gguf',
    'good/config.json',
  ]) {
    mkdirSync(dirname(join(parent, file)), { recursive: true });
    writeFileSync(join(parent, file), '');
  }
  const settings = { executor: 'process', modelDir: '/nowhere' };
  expect(modelDirProblem({ ...settings, modelDirs: [torch, gguf] })).toMatch(
    /^MODEL_DIRS has ".*torch": .*PyTorch[^\n]*; ".*gguf": .*GGUF[^\n]*$/,
  );
  expect(modelDirProblem({ ...settings, modelDirs: [torch, good] })).toBeUndefined();
});

it('names the command that downloads a model if MODEL_DIR is a name of the hub', () => {
  expect(modelDirProblem({ executor: 'process', modelDir: 'stabilityai/sd-turbo' })).toMatch(
    /there is nothing at .*npm run model -- pull stabilityai\/sd-turbo$/,
  );
});
