import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readModelDirectory } from './model-directory.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');

const folderOf = (path: string) => basename(dirname(path));

/** Requirements of model directories beyond Stable Diffusion's, by the class in model_index.json. */
describe('the directory of', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'darkroom-family-')), 'tiny');
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  async function edit(file: string, change: Record<string, unknown>) {
    const json = JSON.parse(await readFile(join(directory, file), 'utf8')) as Record<string, unknown>;
    await writeFile(join(directory, file), JSON.stringify({ ...json, ...change }));
  }

  describe('a latent consistency model', () => {
    beforeEach(() => cp(join(vectors, 'latent-consistency/model'), directory, { recursive: true }));

    it.each(['LatentConsistencyModelPipeline', 'ORTLatentConsistencyModelPipeline'])('is known as %s', async (name) => {
      await edit('model_index.json', { _class_name: name });
      const { card, denoiser } = await readModelDirectory(directory);
      expect(card).toMatchObject({
        pipeline: name,
        steps: { min: 1, max: 50, default: 4 },
        guidance: { default: 8.5 },
        schedulers: ['lcm'],
        defaultScheduler: 'lcm',
      });
      expect(denoiser.guidanceWidth).toBe(32);
    });

    it('accepts only its own scheduler, whatever the saved config', async () => {
      await edit('scheduler/scheduler_config.json', { _class_name: 'DDIMScheduler' });
      const { card } = await readModelDirectory(directory);
      expect(card).toMatchObject({ schedulers: ['lcm'], defaultScheduler: 'lcm', steps: { max: 50 } });
    });

    it.each([
      [
        'unet/config.json',
        { time_cond_proj_dim: null },
        'time_cond_proj_dim: expected the width of the guidance embedding',
      ],
      ['unet/config.json', { addition_embed_type: 'text_time' }, 'addition_embed_type: is not supported'],
      ['model_index.json', { _class_name: 'StableDiffusionPipeline' }, 'time_cond_proj_dim: is not supported'],
      ['scheduler/scheduler_config.json', { original_inference_steps: 2000 }, 'original_inference_steps 2000 are more'],
    ])('refuses %s with %j, naming the field', async (file, change, message) => {
      await edit(file, change);
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });
  });

  describe('Stable Diffusion XL', () => {
    beforeEach(() => cp(join(vectors, 'stable-diffusion-xl/model'), directory, { recursive: true }));

    it.each(['StableDiffusionXLPipeline', 'ORTStableDiffusionXLPipeline'])('is known as %s', async (name) => {
      await edit('model_index.json', { _class_name: name });
      const { card, graphs, textEncoders, denoiser, zeroesEmptyNegative } = await readModelDirectory(directory);
      expect(card).toMatchObject({
        pipeline: name,
        sizes: { multiple: 4, min: 16, max: 64, default: { width: 32, height: 32 } },
        steps: { default: 50 },
        guidance: { default: 5 },
        defaultScheduler: 'euler',
      });
      expect(graphs.textEncoders).toEqual([
        join(directory, 'text_encoder/model.onnx'),
        join(directory, 'text_encoder_2/model.onnx'),
      ]);
      expect(textEncoders).toMatchObject([
        { width: 32, tokenizer: { padId: 1447 } },
        { width: 32, pooledWidth: 24, tokenizer: { padId: 0 } },
      ]);
      expect([denoiser.embeddingWidth, zeroesEmptyNegative]).toEqual([64, true]);
    });

    it.each([
      'tokenizer_2/vocab.json',
      'tokenizer_2/merges.txt',
      'tokenizer_2/tokenizer_config.json',
      'text_encoder_2/config.json',
      'text_encoder_2/model.onnx',
    ])('reports that %s is missing', async (file) => {
      await rm(join(directory, file));
      const message = file.endsWith('.onnx') ? 'text_encoder_2: has none of' : file;
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });

    it.each([
      ['unet/config.json', { addition_embed_type: null }, 'addition_embed_type: '],
      ['unet/config.json', { time_cond_proj_dim: 256 }, 'time_cond_proj_dim: is not supported'],
      ['unet/config.json', { cross_attention_dim: 32 }, 'cross_attention_dim: is 32, expected 64, the hidden_size of'],
      // A refiner has five time ids.
      ['unet/config.json', { projection_class_embeddings_input_dim: 64 }, 'is 64, expected 72: six time ids of 8 and'],
      ['text_encoder_2/config.json', { vocab_size: 49_408 }, 'made for 49408 tokens (vocab_size of text_encoder_2/'],
      ['tokenizer_2/tokenizer_config.json', { model_max_length: 64 }, 'model_max_length: is 64, expected 77, that of'],
      ['tokenizer_2/tokenizer_config.json', { pad_token: '<pad>' }, 'pad_token: "<pad>" is not in the vocabulary'],
    ])('refuses %s with %j, naming the field', async (file, change, message) => {
      await edit(file, change);
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });
  });

  describe('Stable Diffusion 3', () => {
    beforeEach(() => cp(join(vectors, 'stable-diffusion-3/model'), directory, { recursive: true }));

    it.each(['StableDiffusion3Pipeline', 'ORTStableDiffusion3Pipeline'])('is known as %s', async (name) => {
      await edit('model_index.json', { _class_name: name });
      const { card, graphs, textEncoders, denoiser, latents } = await readModelDirectory(directory);
      expect(card).toMatchObject({
        pipeline: name,
        // Twice the default would be 64, but there are positions for 6 patches of 8 pixels per side.
        sizes: { multiple: 8, min: 16, max: 48, default: { width: 32, height: 32 } },
        steps: { default: 28 },
        guidance: { default: 7 },
        schedulers: ['unipc', 'flow_match_euler'],
        defaultScheduler: 'flow_match_euler',
        maxPromptTokens: 256,
      });
      expect(graphs.textEncoders.map(folderOf)).toEqual(['text_encoder', 'text_encoder_2', 'text_encoder_3']);
      expect(folderOf(graphs.denoiser)).toBe('transformer');
      expect(textEncoders).toMatchObject([
        { width: 8, pooledWidth: 10, tokenizer: { kind: 'clip', padId: 1447 } },
        { width: 12, pooledWidth: 12, tokenizer: { kind: 'clip', padId: 0 } },
        { width: 32, tokenizer: { kind: 't5', padId: 0 } },
      ]);
      expect(denoiser).toMatchObject({ embeddingWidth: 32, multiple: 2, maxSide: 12 });
      expect(latents).toEqual({ channels: 16, factor: 4, scalingFactor: 1.5305, shiftFactor: 0.0609 });
    });

    it('may lack its third text encoder', async () => {
      const withoutT5 = { card: { maxPromptTokens: 77 }, textEncoders: [{ width: 8 }, { width: 12 }] };
      await edit('model_index.json', { text_encoder_3: [null, null], tokenizer_3: [null, null] });
      expect(await readModelDirectory(directory)).toMatchObject(withoutT5);
      await cp(join(vectors, 'stable-diffusion-3/model/model_index.json'), join(directory, 'model_index.json'));
      await rm(join(directory, 'text_encoder_3'), { recursive: true });
      expect(await readModelDirectory(directory)).toMatchObject(withoutT5);
    });

    it('accepts a scheduler whose shift depends on the size', async () => {
      await edit('scheduler/scheduler_config.json', { use_dynamic_shifting: true });
      expect((await readModelDirectory(directory)).scheduler.config).toMatchObject({ useDynamicShifting: true });
    });

    it.each([
      'text_encoder/config.json',
      'text_encoder_2/config.json',
      'text_encoder_3/model.onnx',
      'tokenizer_3/tokenizer.json',
      'tokenizer_3/tokenizer_config.json',
      'transformer/config.json',
      'transformer/model.onnx',
    ])('reports that %s is missing', async (file) => {
      await rm(join(directory, file));
      const message = file.endsWith('.onnx') ? `${dirname(file)}: has none of` : file;
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });

    it.each([
      ['transformer/config.json', { in_channels: 4 }, 'in_channels: 4 is not supported; expected 16, the VAE'],
      ['transformer/config.json', { patch_size: 0 }, 'patch_size: '],
      ['transformer/config.json', { sample_size: 16 }, 'sample_size: is 16, expected at most 12, pos_embed_max_size'],
      ['transformer/config.json', { joint_attention_dim: 16 }, 'joint_attention_dim: is 16, expected at least 20, the'],
      ['transformer/config.json', { joint_attention_dim: 64 }, 'is 64, expected 32, the d_model of text_encoder_3/'],
      ['transformer/config.json', { pooled_projection_dim: 64 }, 'pooled_projection_dim: is 64, expected 22, the'],
      [
        'text_encoder/config.json',
        { projection_dim: undefined },
        'text_encoder/config.json: projection_dim: is missing',
      ],
      ['text_encoder_3/config.json', { d_model: undefined }, 'text_encoder_3/config.json: d_model: '],
      ['text_encoder_3/config.json', { vocab_size: 32_128 }, 'tokenizer_3/tokenizer.json: has ids up to 311, but the'],
      ['tokenizer_2/tokenizer_config.json', { model_max_length: 64 }, 'model_max_length: is 64, expected 77, that of'],
      [
        'scheduler/scheduler_config.json',
        { _class_name: 'DDIMScheduler' },
        'flow_match_euler cannot serve a model that is',
      ],
    ])('refuses %s with %j, naming the field', async (file, change, message) => {
      await edit(file, change);
      const failure = readModelDirectory(directory);
      await expect(failure).rejects.toThrow(message);
      await expect(failure).rejects.toMatchObject({ code: 'model_unsupported' });
    });

    it('limits sizes to those that it has positions for', async () => {
      await writeFile(join(directory, 'darkroom.json'), JSON.stringify({ sizes: { max: 56 } }));
      const message = 'darkroom.json: sizes.max: 56 is more than 48, the maximum of transformer/config.json';
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });
  });

  describe('CogView4', () => {
    beforeEach(() => cp(join(vectors, 'cogview4/model'), directory, { recursive: true }));

    it('is known as CogView4Pipeline', async () => {
      const { card, graphs, textEncoders, denoiser } = await readModelDirectory(directory);
      expect(card).toMatchObject({
        pipeline: 'CogView4Pipeline',
        sizes: { multiple: 16, min: 32, max: 128, default: { width: 64, height: 64 } },
        steps: { min: 1, max: 200, default: 50 },
        guidance: { default: 5 },
        schedulers: ['flow_match_euler'],
        defaultScheduler: 'flow_match_euler',
        maxPromptTokens: 1024,
      });
      expect(graphs.denoiser).toBe(join(directory, 'transformer/model.onnx'));
      expect(textEncoders).toMatchObject([{ width: 32, layers: 3, tokenizer: { kind: 'glm', padId: 590 } }]);
      expect(denoiser.embeddingWidth).toBe(32);
    });

    it('accepts only its own scheduler, whichever flow scheduler was saved', async () => {
      await edit('scheduler/scheduler_config.json', {
        _class_name: 'UniPCMultistepScheduler',
        use_flow_sigmas: true,
        prediction_type: 'flow_prediction',
      });
      const { card } = await readModelDirectory(directory);
      expect(card).toMatchObject({ schedulers: ['flow_match_euler'], defaultScheduler: 'flow_match_euler' });
    });

    it.each([
      'tokenizer/tokenizer.json',
      'tokenizer/tokenizer_config.json',
      'text_encoder/config.json',
      'text_encoder/model.onnx',
      'transformer/config.json',
      'transformer/model.onnx',
      'vae_decoder/config.json',
      'vae_decoder/model.onnx',
      'scheduler/scheduler_config.json',
    ])('reports that %s is missing', async (file) => {
      await rm(join(directory, file));
      const message = file.endsWith('.onnx') ? `${file.split('/')[0]}: has none of` : `${file}: is missing`;
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });

    it.each([
      ['text_encoder/config.json', { num_hidden_layers: null }, 'text_encoder/config.json: num_hidden_layers: '],
      [
        'text_encoder/config.json',
        { vocab_size: 151_552 },
        'tokenizer/tokenizer.json: has ids up to 599, but the text',
      ],
      ['text_encoder/config.json', { hidden_size: 64 }, 'transformer/config.json: text_embed_dim: is 32, expected 64'],
      ['transformer/config.json', { in_channels: 4 }, 'transformer/config.json: in_channels: 4 is not supported'],
      ['transformer/config.json', { patch_size: 0 }, 'transformer/config.json: patch_size: '],
      [
        'tokenizer/tokenizer_config.json',
        { pad_token: '<pad>' },
        'tokenizer/tokenizer_config.json: pad_token: "<pad>"',
      ],
      [
        'scheduler/scheduler_config.json',
        { _class_name: 'DDIMScheduler', use_dynamic_shifting: false },
        'scheduler/scheduler_config.json: flow_match_euler cannot serve a model that is not a flow model',
      ],
    ])('refuses %s with %j, naming the field', async (file, change, message) => {
      await edit(file, change);
      await expect(readModelDirectory(directory)).rejects.toThrow(message);
    });
  });
});
