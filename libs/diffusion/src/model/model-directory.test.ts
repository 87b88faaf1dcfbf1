import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseDtypeChoice } from '@darkroom/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readModelDirectory } from './model-directory.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const smallFiles = ['model_index.json', 'darkroom.json', 'unet/config.json', 'vae_decoder/config.json'];
const folders = ['tokenizer', 'scheduler', 'examples'];
const graphs = ['text_encoder', 'unet', 'vae_decoder'].map((part) => `${part}/model_int8.onnx`);

const apple = { prompt: 'a red apple on a white background', seed: 7, image: 'examples/apple.webp' };

describe('reading a model directory', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'darkroom-model-')), 'tiny');
    await mkdir(directory);
    for (const file of [...smallFiles, ...folders]) {
      await cp(join(source, file), join(directory, file), { recursive: true });
    }
    for (const file of graphs) {
      await mkdir(join(directory, file, '..'), { recursive: true });
      await writeFile(join(directory, file), '');
    }
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  async function edit(file: string, change: (json: Record<string, unknown>) => void) {
    const json = JSON.parse(await readFile(join(directory, file), 'utf8')) as Record<string, unknown>;
    change(json);
    await writeFile(join(directory, file), JSON.stringify(json));
  }

  it("reads the model's card from its files", async () => {
    const { card, graphs, latents, preview } = await readModelDirectory(directory);
    expect(card).toEqual({
      id: 'tiny',
      created: expect.any(Number) as number,
      ownedBy: 'darkroom',
      kind: 'image',
      pipeline: 'OnnxStableDiffusionPipeline',
      sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } },
      steps: { min: 1, max: 200, default: 20 },
      guidance: { min: 0, max: 20, default: 3 },
      schedulers: [
        'ddim',
        'pndm',
        'euler',
        'euler_ancestral',
        'dpmpp_2m',
        'dpmpp_2m_karras',
        'dpmpp_2m_sde',
        'dpmpp_2m_sde_karras',
        'unipc',
        'lcm',
      ],
      defaultScheduler: 'dpmpp_2m',
      maxPromptTokens: 77,
      examples: expect.any(Array) as unknown[],
      promptSyntaxes: ['plain', 'webui'],
    });
    expect(latents).toEqual({ channels: 4, factor: 8, scalingFactor: 0.5517687385677271, shiftFactor: 0 });
    expect(graphs.denoiser).toBe(join(directory, 'unet/model_int8.onnx'));
    expect(preview?.matrix).toHaveLength(4);
  });

  it('reads the examples with their thumbnails as data URLs, and refuses a thumbnail of more than 8 KB', async () => {
    const { card } = await readModelDirectory(directory);
    const data = await readFile(join(source, apple.image));
    expect(card.examples).toHaveLength(6);
    expect(card.examples![0]).toEqual({ ...apple, image: `data:image/webp;base64,${data.toString('base64')}` });
    await writeFile(join(directory, apple.image), Buffer.alloc(8193));
    await expect(readModelDirectory(directory)).rejects.toThrow(
      'examples.0.image: examples/apple.webp has 8193 bytes, expected at most 8192',
    );
  });

  it('uses the defaults of diffusers without darkroom.json', async () => {
    await rm(join(directory, 'darkroom.json'));
    const { card, preview } = await readModelDirectory(directory, { id: 'other' });
    expect(card).toMatchObject({
      id: 'other',
      sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } },
      steps: { min: 1, max: 200, default: 50 },
      guidance: { default: 7.5 },
    });
    expect(preview).toBeUndefined();
  });

  it('lists the schedulers that fit the model, and the maximum number of steps', async () => {
    const file = join(directory, 'scheduler/scheduler_config.json');
    await rm(join(directory, 'darkroom.json'));
    const cardWith = async (json: unknown) => {
      await writeFile(file, JSON.stringify(json));
      return (await readModelDirectory(directory)).card;
    };
    expect(await cardWith({ _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 3 })).toMatchObject({
      schedulers: ['unipc', 'flow_match_euler'],
      defaultScheduler: 'flow_match_euler',
    });
    expect(await cardWith({ _class_name: 'LCMScheduler', original_inference_steps: 40 })).toMatchObject({
      steps: { max: 40, default: 40 },
      defaultScheduler: 'lcm',
    });
    expect((await cardWith({ _class_name: 'PNDMScheduler', skip_prk_steps: true })).defaultScheduler).toBe('pndm');
  });

  it("picks each part's graph in the chosen dtype, or the first that exists", async () => {
    await writeFile(join(directory, 'unet/model.onnx'), '');
    expect((await readModelDirectory(directory)).graphs.denoiser).toContain('model_int8.onnx');
    await rm(join(directory, 'unet/model_int8.onnx'));
    expect((await readModelDirectory(directory)).graphs.denoiser).toContain('model.onnx');
    const withDtypes = (text: string) => readModelDirectory(directory, { dtypes: parseDtypeChoice(text)! });
    await writeFile(join(directory, 'vae_decoder/model_fp16.onnx'), '');
    const { graphs } = await withDtypes('int8,unet=auto,vae_decoder=fp16');
    expect(
      [...graphs.textEncoders, graphs.denoiser, graphs.vaeDecoder].map((file) => relative(directory, file)),
    ).toEqual(['text_encoder/model_int8.onnx', 'unet/model.onnx', 'vae_decoder/model_fp16.onnx']);
    await expect(withDtypes('fp16,text_encoder=int8')).rejects.toThrow(
      "unet: has no graph in fp16; of MODEL_DTYPE's values there is fp32 (unet/model.onnx)",
    );
    await expect(withDtypes('auto,transformer=int8')).rejects.toThrow(
      'model_index.json: the model has no transformer: MODEL_DTYPE is auto,transformer=int8, ' +
        'expected of the parts only text_encoder, unet, vae_decoder',
    );
  });

  async function encoderWith(text: string) {
    const { graphs } = await readModelDirectory(directory, { dtypes: parseDtypeChoice(text)! });
    return graphs.vaeEncoder && relative(directory, graphs.vaeEncoder);
  }

  describe('with a VAE encoder', () => {
    beforeEach(async () => {
      await mkdir(join(directory, 'vae_encoder'));
      await writeFile(join(directory, 'vae_encoder/model.onnx'), '');
    });

    it('accepts images and masks if the family has pipelines for them', async () => {
      expect((await readModelDirectory(directory)).card.takes).toEqual(['image', 'mask']);
      await edit('model_index.json', (json) => Object.assign(json, { _class_name: 'StableDiffusionInpaintPipeline' }));
      expect((await readModelDirectory(directory)).card.takes).toEqual(['image', 'mask']);
    });

    it('accepts no images without a VAE encoder graph', async () => {
      await rm(join(directory, 'vae_encoder/model.onnx'));
      expect((await readModelDirectory(directory)).card).not.toHaveProperty('takes');
    });

    it('prefers the dtype of the other parts for the VAE encoder, and requires a dtype chosen for it alone', async () => {
      expect(await encoderWith('int8')).toBe('vae_encoder/model.onnx');
      await writeFile(join(directory, 'vae_encoder/model_int8.onnx'), '');
      expect(await encoderWith('int8')).toBe('vae_encoder/model_int8.onnx');
      expect(await encoderWith('auto')).toBe('vae_encoder/model_int8.onnx');
      expect(await encoderWith('int8,vae_encoder=fp32')).toBe('vae_encoder/model.onnx');
      await expect(encoderWith('int8,vae_encoder=fp16')).rejects.toThrow('vae_encoder: has no graph in fp16');
    });

    it('accepts a denoiser that was trained for inpainting', async () => {
      await edit('unet/config.json', (json) => Object.assign(json, { in_channels: 9 }));
      expect((await readModelDirectory(directory)).denoiser.inChannels).toBe(9);
    });
  });

  it('accepts a tokenizer that consists of a tokenizer.json alone', async () => {
    const vocab = JSON.parse(await readFile(join(directory, 'tokenizer/vocab.json'), 'utf8')) as unknown;
    await rm(join(directory, 'tokenizer/vocab.json'));
    await writeFile(join(directory, 'tokenizer/tokenizer.json'), JSON.stringify({ model: { vocab } }));
    expect((await readModelDirectory(directory)).textEncoders[0]?.tokenizer).toMatchObject({
      startIds: [1446],
      padId: 1447,
    });
  });

  it.each([...smallFiles.filter((file) => file !== 'darkroom.json'), 'tokenizer/vocab.json', 'tokenizer/merges.txt'])(
    'reports that %s is missing',
    async (file) => {
      await rm(join(directory, file));
      await expect(readModelDirectory(directory)).rejects.toThrow(`${file}: is missing`);
    },
  );

  it.each([
    ['model_index.json', { _class_name: 'FluxPipeline' }, '_class_name: FluxPipeline is not supported; supported are'],
    ['model_index.json', { _class_name: 3 }, '_class_name: '],
    ['unet/config.json', { sample_size: 'big' }, 'sample_size: '],
    ['unet/config.json', { in_channels: 9 }, 'in_channels: 9 is not supported without vae_encoder'],
    ['unet/config.json', { in_channels: 8 }, 'in_channels: 8 is not supported; expected 4'],
    ['unet/config.json', { time_cond_proj_dim: 256 }, 'time_cond_proj_dim: is not supported'],
    ['vae_decoder/config.json', { scaling_factor: -1 }, 'scaling_factor: '],
    ['scheduler/scheduler_config.json', { _class_name: 'Heun' }, 'scheduler class Heun is not supported'],
    ['scheduler/scheduler_config.json', { solver_order: 3 }, 'scheduler config: solver_order 3 is not supported'],
    ['scheduler/scheduler_config.json', { use_ays: true }, 'scheduler config: use_ays (true) is not a supported field'],
    [
      'scheduler/scheduler_config.json',
      { _class_name: 'FlowMatchEulerDiscreteScheduler', prediction_type: null, use_dynamic_shifting: true },
      'use_dynamic_shifting true is not supported by OnnxStableDiffusionPipeline',
    ],
    ['tokenizer/special_tokens_map.json', { eos_token: '<end>' }, 'eos_token: "<end>" is not in the vocabulary'],
    ['darkroom.json', { step: {} }, 'Unrecognized key'],
    [
      'darkroom.json',
      { examples: Array.from({ length: 7 }, () => apple) },
      'examples: Too big: expected array to have <=6 items',
    ],
    ['darkroom.json', { examples: [apple, { ...apple, seed: -1 }] }, 'examples.1.seed: Too small'],
    ['darkroom.json', { examples: [{ ...apple, prompt: 'a'.repeat(301) }] }, 'examples.0.prompt: Too big'],
    [
      'darkroom.json',
      { examples: [{ ...apple, image: '../apple.webp' }] },
      'examples.0.image: expected the path of a .webp, .png or .jpg file in examples/; it is "../apple',
    ],
    [
      'darkroom.json',
      { examples: [{ ...apple, image: 'examples/none.webp' }] },
      'examples.0.image: examples/none.webp cannot be read',
    ],
    ['darkroom.json', { steps: { min: 5, default: 2 } }, 'steps.default: 2 is not in 5 … 200'],
    ['darkroom.json', { sizes: { multiple: 8 } }, 'sizes.multiple: 8 is not a multiple of 32'],
    ['darkroom.json', { sizes: { max: 250 } }, 'sizes.max: 250 is not a multiple of 32'],
    [
      'darkroom.json',
      { preview: { matrix: [[1, 2, 3]], bias: [0, 0, 0] } },
      'preview.matrix: has 1 rows, expected 4, one per latent channel',
    ],
  ])('refuses %s with %j, naming the field', async (file, change, message) => {
    await edit(file, (json) => Object.assign(json, change));
    await expect(readModelDirectory(directory)).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringContaining(`${file}: ${message}`) as string,
    });
  });

  it('refuses a model id that is not safe in a URL', async () => {
    await expect(readModelDirectory(directory, { id: 'Tiny Model' })).rejects.toThrow('is not a model id');
  });
});
