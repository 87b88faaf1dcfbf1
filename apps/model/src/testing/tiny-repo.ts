import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type FakeFile, fakeFile, FakeHub } from './fake-hub.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');

/** What a download brings of it. */
export const neededFiles = [
  'NOTICE.md',
  'README.md',
  'darkroom.json',
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
];

/** A hub with the embedded model, beside what repositories have that nobody here needs. */
export async function startTinyRepo(): Promise<FakeHub> {
  const hub = await FakeHub.start();
  hub.files = new Map(await readModel());
  hub.put('.gitattributes', '*.onnx filter=lfs');
  hub.put('unet/diffusion_pytorch_model.safetensors', 'weights of PyTorch', true);
  hub.put('safety_checker/model.onnx', 'of no use here', true);
  hub.put('feature_extractor/preprocessor_config.json', '{}');
  hub.put('v1-5-pruned.ckpt', 'weights of PyTorch', true);
  return hub;
}

let model: Promise<Map<string, FakeFile>> | undefined;

/** Read, and its digests computed, once for all tests of a process. */
function readModel(): Promise<Map<string, FakeFile>> {
  model ??= (async () => {
    const files = new Map<string, FakeFile>();
    for (const entry of await readdir(source, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      files.set(relative(source, path), fakeFile(await readFile(path), /\.(?:onnx|png)$/.test(path)));
    }
    return files;
  })();
  return model;
}
