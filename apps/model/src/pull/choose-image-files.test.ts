import { readdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HubFile } from '../hub/hub-repo.ts';
import { chooseFiles } from './choose-image-files.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-3/model');

function choose(files: readonly string[], index: Record<string, unknown> = {}) {
  const checksum = { kind: 'sha256', digest: '' } as const;
  const listed = files.map((path): HubFile => ({ path, size: 1, checksum }));
  const chosen = chooseFiles({
    repo: 'a/b',
    files: listed,
    pipelineClass: 'StableDiffusion3Pipeline',
    index,
    dtypes: { all: 'auto', parts: {} },
  });
  return [...chosen.small, ...chosen.graphs].map(({ path }) => path).toSorted();
}

/** A model whose third text encoder, most of its bytes, many repositories omit. */
describe('the files of Stable Diffusion 3', () => {
  let paths: string[];
  beforeAll(async () => {
    const entries = await readdir(source, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    paths = files.map((entry) => relative(source, join(entry.parentPath, entry.name)));
  });

  it('include everything that the pipeline can use', () => {
    const others = ['text_encoder_3/model.safetensors', 'vae_encoder/model_fp16.onnx', 'image_encoder/model.onnx'];
    expect(choose([...paths, ...others])).toEqual(paths.toSorted());
  });

  it('exclude T5 when the repository lacks it', () => {
    const without = paths.filter((path) => !/^(?:text_encoder|tokenizer)_3\//.test(path));
    expect(choose(without)).toEqual(without.toSorted());
    expect(choose([...without, 'tokenizer_3/tokenizer.json'])).toEqual(without.toSorted());
  });

  it('exclude T5 when model_index.json declares none', () => {
    const without = paths.filter((path) => !/^(?:text_encoder|tokenizer)_3\//.test(path));
    expect(choose(paths, { text_encoder_3: [null, null] })).toEqual(without.toSorted());
  });

  it('exclude the VAE encoder when the repository lacks it', () => {
    const without = paths.filter((path) => !path.startsWith('vae_encoder/'));
    expect(choose(without)).toEqual(without.toSorted());
    expect(choose([...without, 'vae_encoder/config.json'])).toEqual(without.toSorted());
  });

  it('are incomplete with a T5 in another format', () => {
    const withoutGraph = paths.filter((path) => path !== 'text_encoder_3/model.onnx');
    expect(() => choose(withoutGraph)).toThrow(
      'a/b has none of model_int8.onnx, model.onnx, model_fp16.onnx in text_encoder_3/',
    );
  });
});
