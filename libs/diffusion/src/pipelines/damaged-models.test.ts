import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { externalizeWeights } from '@darkroom/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const unet = 'unet/model_int8.onnx';

/** Loading an incomplete or inconsistent model fails with the name of the file and the problem. */
describe('a damaged model', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'darkroom-damaged-')), 'tiny');
    await cp(source, directory, { recursive: true });
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  const path = (file: string): string => join(directory, file);
  const failure = async () => {
    const error: unknown = await loadPipeline({ directory, threads: 1 }).then(
      async (pipeline) => pipeline.dispose(),
      (error: unknown) => error,
    );
    return error as { code: string; message: string } | undefined;
  };
  async function edit(file: string, change: (json: Record<string, unknown>) => void) {
    const json = JSON.parse(await readFile(path(file), 'utf8')) as Record<string, unknown>;
    change(json);
    await writeFile(path(file), JSON.stringify(json));
  }

  it('loads if it is intact, with internal or external weights', async () => {
    expect(await failure()).toBeUndefined();
    externalizeWeights(path(unet), 'model.onnx_data');
    expect(await failure()).toBeUndefined();
  });

  it.each([
    'model_index.json',
    'scheduler/scheduler_config.json',
    'tokenizer/vocab.json',
    'tokenizer/merges.txt',
    'tokenizer/tokenizer_config.json',
    'unet/config.json',
    'vae_decoder/config.json',
  ])('reports that %s is missing', async (file) => {
    await rm(path(file));
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message: `${file}: is missing` });
  });

  it.each(['text_encoder', 'unet', 'vae_decoder'])('reports that the graph of %s is missing', async (part) => {
    await rm(path(`${part}/model_int8.onnx`));
    const message = `${part}: has none of model_int8.onnx, model.onnx, model_fp16.onnx`;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it.each([
    [10_000_000, 'it is cut short: it has 10000000 bytes and needs at least 100718\\d\\d'],
    [1, 'a number at byte 1 has no end'],
    [0, 'it is empty'],
  ])('reports a graph truncated to %d bytes', async (bytes, problem) => {
    await truncate(path(unet), bytes);
    const message = expect.stringMatching(`^${unet}: is not a whole ONNX file: ${problem}$`) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it.each([
    ['a page', '<!doctype html><title>404</title>', 'byte 1 is not the start of a field'],
    [
      'a Git LFS pointer',
      'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 10071871\n',
      'it is a Git LFS pointer and not the file itself, run `git lfs pull` to fetch it',
    ],
    ['a model without a graph', Buffer.from([8, 10]), 'it has no graph'],
  ])('reports %s in place of a graph', async (_what, content, problem) => {
    await writeFile(path(unet), content);
    const message = `${unet}: is not a whole ONNX file: ${problem}`;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('reports external data that is missing, short or elsewhere', async () => {
    externalizeWeights(path(unet), 'model.onnx_data');
    const whole = await readFile(path('unet/model.onnx_data'));
    await writeFile(path('unet/model.onnx_data'), whole.subarray(0, whole.length - 10));
    const needed = `it has ${whole.length - 10} bytes and ${unet} needs ${whole.length}`;
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: `unet/model.onnx_data: is cut short: ${needed}`,
    });
    await rm(path('unet/model.onnx_data'));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: `unet/model.onnx_data: is missing; it has the weights of ${unet}`,
    });
  });

  it.each(['../../vae_decoder/stolen', '/etc/passwd', 'a\\b'])('reports external data in %s', async (location) => {
    externalizeWeights(path(unet), location, { writeTo: 'elsewhere' });
    const named = JSON.stringify(location);
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: `${unet}: has its external data in ${named}, which is outside its folder`,
    });
  });

  it('reports a tokenizer with more tokens than the encoder, or far fewer', async () => {
    const expected = 'the text encoder was made for 1448 tokens (vocab_size of text_encoder/config.json)';
    await edit('tokenizer/vocab.json', (json) => (json['extra</w>'] = 1448));
    expect(await failure()).toMatchObject({
      message: `tokenizer/vocab.json: has ids up to 1448, but ${expected}`,
    });
    await cp(join(source, 'tokenizer/vocab.json'), path('tokenizer/vocab.json'));
    await edit('text_encoder/config.json', (json) => (json['vocab_size'] = 49_408));
    expect(await failure()).toMatchObject({
      message: `tokenizer/vocab.json: has ids up to 1447, but ${expected.replace('1448', '49408')}`,
    });
  });

  it('reports a tokenizer whose files do not match, or that writes more tokens than the encoder reads', async () => {
    await writeFile(path('tokenizer/merges.txt'), '#version: 0.2\nz q\n');
    expect(await failure()).toMatchObject({
      message: 'tokenizer/merges.txt: makes "zq", which vocab.json has no id for',
    });
    await cp(join(source, 'tokenizer/merges.txt'), path('tokenizer/merges.txt'));
    await edit('tokenizer/tokenizer_config.json', (json) => (json['model_max_length'] = 248));
    const expected = 'the text encoder reads 77 (max_position_embeddings of text_encoder/config.json)';
    expect(await failure()).toMatchObject({
      message: `tokenizer/tokenizer_config.json: model_max_length: is 248, but ${expected}`,
    });
  });

  it('reports an encoder that differs from its configuration', async () => {
    await edit('text_encoder/config.json', (json) => (json['vocab_size'] = 1600));
    await edit('tokenizer/vocab.json', (json) => (json['extra</w>'] = 1599));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'text_encoder/model_int8.onnx: does not accept input_ids [1, 77] of ids up to 1599, which the other model files require',
    });
  });

  it('reports parts whose shapes differ from their configurations', async () => {
    await edit('unet/config.json', (json) => (json['cross_attention_dim'] = 768));
    expect(await failure()).toMatchObject({
      message:
        'unet/config.json: cross_attention_dim: is 768, expected 128, the hidden_size of text_encoder/config.json',
    });
    await edit('text_encoder/config.json', (json) => (json['hidden_size'] = 768));
    expect(await failure()).toMatchObject({
      message:
        'text_encoder/model_int8.onnx: returns [1, 77, 128] for input_ids [1, 77] of ids up to 1447, expected [1, 77, 768] by the other model files',
    });
  });

  it('reports a UNet whose channels differ from its configuration', async () => {
    await edit('unet/config.json', (json) => (json['in_channels'] = 8));
    await edit('vae_decoder/config.json', (json) => (json['latent_channels'] = 8));
    await rm(path('darkroom.json'));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: `${unet}: does not accept sample [2, 8, 4, 4] and encoder_hidden_states [2, 77, 128], which the other model files require`,
    });
  });

  it('reports a decoder whose output size differs from its configuration', async () => {
    await edit('vae_decoder/config.json', (json) => (json['block_out_channels'] = [8, 16, 32]));
    await rm(path('darkroom.json'));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'vae_decoder/model_int8.onnx: returns [1, 3, 32, 32] for latent_sample [1, 4, 4, 4], expected [1, 3, 16, 16] by the other model files',
    });
  });

  it('reports another graph in place of the UNet', async () => {
    await cp(path('vae_decoder/model_int8.onnx'), path(unet));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: `${unet}: has an input latent_sample; supported are exactly sample, timestep, encoder_hidden_states`,
    });
  });
});
