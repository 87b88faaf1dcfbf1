import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type FakeFile, fakeFile, FakeHub } from './fake-hub.ts';

const models = resolve(import.meta.dirname, '../../../../models');

/** Files that a pull downloads from it. */
export const neededFiles = [
  'NOTICE.md',
  'README.md',
  'darkroom.json',
  ...['apple', 'cake', 'cat', 'fox', 'penguin', 'rocket'].map((name) => `examples/${name}.webp`),
  'licenses/emoji-datasource.LICENSE',
  'licenses/noto-color-emoji.copyright',
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  'text_encoder/model_int8.onnx',
  'tokenizer/merges.txt',
  'tokenizer/special_tokens_map.json',
  'tokenizer/tokenizer_config.json',
  'tokenizer/vocab.json',
  'unet/config.json',
  'unet/model_int8.onnx',
  'vae_decoder/config.json',
  'vae_decoder/model_int8.onnx',
  'vae_encoder/config.json',
  'vae_encoder/model_int8.onnx',
];

/** Starts a hub with the embedded model and typical files that a pull must skip. */
export async function startTinyRepo(): Promise<FakeHub> {
  const hub = await FakeHub.start();
  hub.files = await readModel('emoji-sd');
  hub.put('.gitattributes', '*.onnx filter=lfs');
  hub.put('unet/diffusion_pytorch_model.safetensors', 'weights of PyTorch', true);
  hub.put('safety_checker/model.onnx', 'of no use here', true);
  hub.put('feature_extractor/preprocessor_config.json', '{}');
  hub.put('examples/grid.png', 'x'.repeat(8193));
  hub.put('v1-5-pruned.ckpt', 'weights of PyTorch', true);
  return hub;
}

/** Files that a pull of the embedded writer downloads. */
export const neededTextFiles = [
  'NOTICE.md',
  'README.md',
  'config.json',
  'generation_config.json',
  'onnx/model_int8.onnx',
  'tokenizer.json',
  'tokenizer_config.json',
];

/** Starts a hub with the embedded writer in several dtypes and typical files that a pull must skip. */
export async function startTextRepo(): Promise<FakeHub> {
  const hub = await FakeHub.start();
  hub.files = await readModel('emoji-writer');
  const graph = hub.files.get('onnx/model_int8.onnx')!.content;
  for (const name of ['model', 'model_q4', 'model_fp16', 'model_bnb4', 'decoder_model_merged'])
    hub.put(`onnx/${name}.onnx`, graph, true);
  hub.put('.gitattributes', '*.onnx filter=lfs');
  hub.put('model.safetensors', 'weights of PyTorch', true);
  hub.put('tokenizer.model', 'of SentencePiece', true);
  hub.put('trainer_state.json', '{}');
  return hub;
}

const read = new Map<string, Promise<Map<string, FakeFile>>>();

/** Reads the files and computes their digests once per process. */
async function readModel(name: string): Promise<Map<string, FakeFile>> {
  const source = join(models, name);
  if (!read.has(name)) read.set(name, readFiles(source));
  return new Map(await read.get(name)!);
}

async function readFiles(source: string): Promise<Map<string, FakeFile>> {
  const files = new Map<string, FakeFile>();
  for (const entry of await readdir(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(source, path), fakeFile(await readFile(path), /\.(?:onnx|png)$/.test(path)));
  }
  return files;
}
