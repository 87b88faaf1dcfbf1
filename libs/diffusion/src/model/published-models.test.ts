import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readModelDirectory } from './model-directory.ts';

type Json = Record<string, unknown>;

const added = (content: string) => ({ __type: 'AddedToken', content, lstrip: false, normalized: true, rstrip: false });
const clipMarks = {
  bos_token: added('<|startoftext|>'),
  eos_token: added('<|endoftext|>'),
  unk_token: added('<|endoftext|>'),
};
/** The format before 2023: tokenizer_config.json lists no tokens. */
const oldClipConfig = {
  add_prefix_space: false,
  ...clipMarks,
  do_lower_case: true,
  errors: 'replace',
  model_max_length: 77,
  pad_token: '<|endoftext|>',
  special_tokens_map_file: '../special_tokens_map.json',
  tokenizer_class: 'CLIPTokenizer',
};
const newClipConfig = (padToken: string) => ({
  ...oldClipConfig,
  added_tokens_decoder: { 0: added('!'), 49406: added('<|startoftext|>'), 49407: added('<|endoftext|>') },
  clean_up_tokenization_spaces: true,
  pad_token: padToken,
});
/** The vocabularies contain only the tokens that these tests need. */
const clipTokenizer = (folder: string, config: Json = oldClipConfig) => ({
  [`${folder}/tokenizer_config.json`]: config,
  [`${folder}/vocab.json`]: { '!': 0, '<|startoftext|>': 49_406, '<|endoftext|>': 49_407 },
  [`${folder}/merges.txt`]: '#version: 0.2\n',
});
const clipEncoder = (hiddenSize: number, projectionDim: number, padTokenId = 1) => ({
  architectures: ['CLIPTextModel'],
  bos_token_id: 0,
  eos_token_id: 2,
  hidden_size: hiddenSize,
  max_position_embeddings: 77,
  model_type: 'clip_text_model',
  num_hidden_layers: 12,
  pad_token_id: padTokenId,
  projection_dim: projectionDim,
  vocab_size: 49_408,
});

const betas = { beta_end: 0.012, beta_schedule: 'scaled_linear', beta_start: 0.00085, num_train_timesteps: 1000 };
const euler = {
  _class_name: 'EulerDiscreteScheduler',
  ...betas,
  clip_sample: false,
  interpolation_type: 'linear',
  prediction_type: 'epsilon',
  sample_max_value: 1.0,
  set_alpha_to_one: false,
  sigma_max: null,
  sigma_min: null,
  skip_prk_steps: true,
  steps_offset: 1,
  timestep_spacing: 'trailing',
  timestep_type: 'discrete',
  trained_betas: null,
  use_karras_sigmas: false,
};
const flow = (fields: Json) => ({
  _class_name: 'FlowMatchEulerDiscreteScheduler',
  num_train_timesteps: 1000,
  shift: 3.0,
  ...fields,
});

const vae = (fields: Json) => ({
  _class_name: 'AutoencoderKL',
  act_fn: 'silu',
  block_out_channels: [128, 256, 512, 512],
  in_channels: 3,
  latent_channels: 4,
  norm_num_groups: 32,
  sample_size: 512,
  ...fields,
});
const newVae = { force_upcast: true, latents_mean: null, latents_std: null, mid_block_add_attention: true };
const oldUnet = (fields: Json) => ({
  _class_name: 'UNet2DConditionModel',
  attention_head_dim: 8,
  block_out_channels: [320, 640, 1280, 1280],
  center_input_sample: false,
  cross_attention_dim: 768,
  in_channels: 4,
  sample_size: 64,
  ...fields,
});
const newUnet = (fields: Json) =>
  oldUnet({
    addition_embed_type: null,
    addition_embed_type_num_heads: 64,
    addition_time_embed_dim: null,
    class_embed_type: null,
    class_embeddings_concat: false,
    encoder_hid_dim: null,
    encoder_hid_dim_type: null,
    num_class_embeds: null,
    projection_class_embeddings_input_dim: null,
    time_cond_proj_dim: null,
    timestep_post_act: null,
    ...fields,
  });

const sdxl = (fields: { scheduler: Json; sampleSize: number }) => ({
  'model_index.json': { _class_name: 'StableDiffusionXLPipeline', force_zeros_for_empty_prompt: true },
  'scheduler/scheduler_config.json': fields.scheduler,
  ...clipTokenizer('tokenizer', newClipConfig('<|endoftext|>')),
  ...clipTokenizer('tokenizer_2', newClipConfig('!')),
  'text_encoder/config.json': clipEncoder(768, 768),
  'text_encoder_2/config.json': clipEncoder(1280, 1280),
  'unet/config.json': newUnet({
    addition_embed_type: 'text_time',
    addition_time_embed_dim: 256,
    attention_head_dim: [5, 10, 20],
    block_out_channels: [320, 640, 1280],
    cross_attention_dim: 2048,
    projection_class_embeddings_input_dim: 2816,
    sample_size: fields.sampleSize,
  }),
  'vae_decoder/config.json': vae({ ...newVae, sample_size: 1024, scaling_factor: 0.13025 }),
});

const stableDiffusion3 = (transformer: Json, scheduler: Json = flow({})) => ({
  'model_index.json': {
    _class_name: 'StableDiffusion3Pipeline',
    feature_extractor: [null, null],
    image_encoder: [null, null],
    text_encoder_3: ['transformers', 'T5EncoderModel'],
  },
  'scheduler/scheduler_config.json': scheduler,
  ...clipTokenizer('tokenizer', newClipConfig('<|endoftext|>')),
  ...clipTokenizer('tokenizer_2', newClipConfig('!')),
  'tokenizer_3/tokenizer_config.json': {
    add_prefix_space: true,
    added_tokens_decoder: { 0: added('<pad>'), 1: added('</s>'), 2: added('<unk>'), 32099: added('<extra_id_0>') },
    eos_token: '</s>',
    extra_ids: 100,
    legacy: true,
    model_max_length: 512,
    pad_token: '<pad>',
    sp_model_kwargs: {},
    tokenizer_class: 'T5Tokenizer',
    unk_token: '<unk>',
  },
  'tokenizer_3/tokenizer.json': {
    added_tokens: [{ id: 32_099, content: '<extra_id_0>' }],
    model: { type: 'Unigram', unk_id: 2, vocab: ['<pad>', '</s>', '<unk>'].map((piece) => [piece, 0]) },
  },
  'text_encoder/config.json': clipEncoder(768, 768),
  'text_encoder_2/config.json': clipEncoder(1280, 1280),
  'text_encoder_3/config.json': { d_ff: 10_240, d_model: 4096, model_type: 't5', num_layers: 24, vocab_size: 32_128 },
  'transformer/config.json': {
    _class_name: 'SD3Transformer2DModel',
    attention_head_dim: 64,
    in_channels: 16,
    joint_attention_dim: 4096,
    out_channels: 16,
    patch_size: 2,
    pooled_projection_dim: 2048,
    sample_size: 128,
    ...transformer,
  },
  'vae_decoder/config.json': vae({
    ...newVae,
    latent_channels: 16,
    sample_size: 1024,
    scaling_factor: 1.5305,
    shift_factor: 0.0609,
    use_post_quant_conv: false,
    use_quant_conv: false,
  }),
});

/** The small files of published models: everything that pipelines read, plus what they might trip over. */
const models = {
  'Stable Diffusion 1.5': {
    'model_index.json': {
      _class_name: 'StableDiffusionPipeline',
      feature_extractor: ['transformers', 'CLIPImageProcessor'],
      safety_checker: ['stable_diffusion', 'StableDiffusionSafetyChecker'],
    },
    'scheduler/scheduler_config.json': {
      _class_name: 'PNDMScheduler',
      ...betas,
      set_alpha_to_one: false,
      skip_prk_steps: true,
      steps_offset: 1,
      trained_betas: null,
      clip_sample: false,
    },
    ...clipTokenizer('tokenizer'),
    'tokenizer/special_tokens_map.json': { ...clipMarks, pad_token: '<|endoftext|>' },
    'text_encoder/config.json': clipEncoder(768, 768),
    'unet/config.json': oldUnet({}),
    'vae_decoder/config.json': vae({}),
  },
  'Stable Diffusion 2.1': {
    'model_index.json': { _class_name: 'StableDiffusionPipeline', requires_safety_checker: false },
    'scheduler/scheduler_config.json': {
      _class_name: 'DDIMScheduler',
      ...betas,
      clip_sample: false,
      prediction_type: 'v_prediction',
      set_alpha_to_one: false,
      skip_prk_steps: true,
      steps_offset: 1,
      trained_betas: null,
    },
    ...clipTokenizer('tokenizer'),
    'tokenizer/special_tokens_map.json': { ...clipMarks, pad_token: '!' },
    'text_encoder/config.json': clipEncoder(1024, 512),
    'unet/config.json': oldUnet({ attention_head_dim: [5, 10, 20, 20], cross_attention_dim: 1024, sample_size: 96 }),
    'vae_decoder/config.json': vae({ sample_size: 768 }),
  },
  'SD-Turbo': {
    'model_index.json': { _class_name: 'StableDiffusionPipeline', image_encoder: [null, null] },
    'scheduler/scheduler_config.json': euler,
    ...clipTokenizer('tokenizer', newClipConfig('!')),
    'text_encoder/config.json': clipEncoder(1024, 512),
    'unet/config.json': newUnet({ cross_attention_dim: 1024 }),
    'vae_decoder/config.json': vae({ ...newVae, sample_size: 768, scaling_factor: 0.18215 }),
  },
  'LCM Dreamshaper v7': {
    'model_index.json': { _class_name: 'LatentConsistencyModelPipeline', requires_safety_checker: true },
    'scheduler/scheduler_config.json': {
      _class_name: 'LCMScheduler',
      ...betas,
      clip_sample: false,
      clip_sample_range: 1.0,
      dynamic_thresholding_ratio: 0.995,
      original_inference_steps: 50,
      prediction_type: 'epsilon',
      rescale_betas_zero_snr: false,
      sample_max_value: 1.0,
      set_alpha_to_one: true,
      steps_offset: 0,
      thresholding: false,
      timestep_scaling: 10.0,
      timestep_spacing: 'leading',
      trained_betas: null,
    },
    ...clipTokenizer('tokenizer', newClipConfig('<|endoftext|>')),
    'text_encoder/config.json': clipEncoder(768, 768),
    'unet/config.json': newUnet({ time_cond_proj_dim: 256 }),
    'vae_decoder/config.json': vae({ sample_size: 768, scaling_factor: 0.18215 }),
  },
  'Stable Diffusion XL': sdxl({ scheduler: { ...euler, timestep_spacing: 'leading' }, sampleSize: 128 }),
  'SDXL-Turbo': sdxl({ scheduler: { ...euler, _class_name: 'EulerAncestralDiscreteScheduler' }, sampleSize: 64 }),
  'Stable Diffusion 3 Medium': stableDiffusion3({ caption_projection_dim: 1536, pos_embed_max_size: 192 }),
  'Stable Diffusion 3.5 Medium': stableDiffusion3({
    dual_attention_layers: [0, 1, 2],
    pos_embed_max_size: 384,
    qk_norm: 'rms_norm',
  }),
  'Stable Diffusion 3.5 Large Turbo': stableDiffusion3(
    { pos_embed_max_size: 192, qk_norm: 'rms_norm' },
    flow({ use_dynamic_shifting: false, base_shift: 0.5, max_shift: 1.15, invert_sigmas: false }),
  ),
  CogView4: {
    'model_index.json': { _class_name: 'CogView4Pipeline', tokenizer: ['transformers', 'PreTrainedTokenizerFast'] },
    'scheduler/scheduler_config.json': flow({
      base_image_seq_len: 256,
      base_shift: 0.25,
      invert_sigmas: false,
      max_image_seq_len: 4096,
      max_shift: 0.75,
      shift: 1.0,
      shift_terminal: null,
      time_shift_type: 'linear',
      use_beta_sigmas: false,
      use_dynamic_shifting: true,
      use_exponential_sigmas: false,
      use_karras_sigmas: false,
    }),
    'tokenizer/tokenizer_config.json': {
      added_tokens_decoder: { 151329: added('<|endoftext|>') },
      eos_token: '<|endoftext|>',
      extra_special_tokens: {},
      model_max_length: 128_000,
      pad_token: '<|endoftext|>',
      padding_side: 'left',
      tokenizer_class: 'PreTrainedTokenizer',
    },
    'tokenizer/tokenizer.json': {
      added_tokens: [
        { id: 151_329, content: '<|endoftext|>' },
        { id: 151_342, content: '<|end_of_video|>' },
      ],
      model: { type: 'BPE', vocab: { a: 64 }, merges: [] },
    },
    'text_encoder/config.json': {
      eos_token_id: [151_329, 151_336, 151_338],
      hidden_size: 4096,
      max_position_embeddings: 8192,
      model_type: 'glm',
      num_hidden_layers: 40,
      pad_token_id: 151_329,
      vocab_size: 151_552,
    },
    'transformer/config.json': {
      _class_name: 'CogView4Transformer2DModel',
      in_channels: 16,
      num_layers: 28,
      patch_size: 2,
      pos_embed_max_size: 128,
      rope_axes_dim: [256, 256],
      sample_size: 128,
      text_embed_dim: 4096,
      time_embed_dim: 512,
    },
    'vae_decoder/config.json': vae({
      ...newVae,
      block_out_channels: [128, 512, 1024, 1024],
      latent_channels: 16,
      sample_size: 1024,
      scaling_factor: 1.0,
      shift_factor: 0.0,
    }),
  },
} satisfies Record<string, Record<string, Json | string>>;

describe('a published model', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-published-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  async function read(files: Readonly<Record<string, Json | string>>) {
    for (const [file, content] of Object.entries(files)) {
      await mkdir(dirname(join(directory, file)), { recursive: true });
      await writeFile(join(directory, file), typeof content === 'string' ? content : JSON.stringify(content));
      const isConfig = file.endsWith('/config.json');
      if (isConfig) await writeFile(join(directory, dirname(file), 'model.onnx'), '');
    }
    return readModelDirectory(directory, { id: 'published' });
  }

  it.each([
    ['Stable Diffusion 1.5', { side: 512, scheduler: 'pndm', tokens: 77, pads: [49_407] }],
    ['Stable Diffusion 2.1', { side: 768, scheduler: 'ddim', tokens: 77, pads: [0] }],
    ['SD-Turbo', { side: 512, scheduler: 'euler', tokens: 77, pads: [0] }],
    ['LCM Dreamshaper v7', { side: 512, scheduler: 'lcm', tokens: 77, pads: [49_407] }],
    ['Stable Diffusion XL', { side: 1024, scheduler: 'euler', tokens: 77, pads: [49_407, 0] }],
    ['SDXL-Turbo', { side: 512, scheduler: 'euler_ancestral', tokens: 77, pads: [49_407, 0] }],
    ['Stable Diffusion 3 Medium', { side: 1024, scheduler: 'flow_match_euler', tokens: 256, pads: [49_407, 0, 0] }],
    ['Stable Diffusion 3.5 Medium', { side: 1024, scheduler: 'flow_match_euler', tokens: 256, pads: [49_407, 0, 0] }],
    [
      'Stable Diffusion 3.5 Large Turbo',
      { side: 1024, scheduler: 'flow_match_euler', tokens: 256, pads: [49_407, 0, 0] },
    ],
    ['CogView4', { side: 1024, scheduler: 'flow_match_euler', tokens: 1024, pads: [151_329] }],
  ] as const)('is read: %s', async (name, { side, scheduler, tokens, pads }) => {
    const { card, textEncoders } = await read(models[name]);
    expect(card).toMatchObject({
      sizes: { min: side / 2, max: side * 2, default: { width: side, height: side } },
      defaultScheduler: scheduler,
      maxPromptTokens: tokens,
    });
    expect(textEncoders.map(({ tokenizer }) => tokenizer.padId)).toEqual(pads);
  });

  it('may have a tokenizer saved without its maximum length', async () => {
    const config = JSON.stringify({ ...oldClipConfig, model_max_length: 1e30 }).replace('1e+30', `1${'0'.repeat(30)}`);
    const files = { ...models['Stable Diffusion 1.5'], 'tokenizer/tokenizer_config.json': config };
    expect((await read(files)).card.maxPromptTokens).toBe(77);
  });

  it('uses the padding token from the list of added tokens, if there is one', async () => {
    const files = { ...models['SD-Turbo'], 'tokenizer/special_tokens_map.json': { pad_token: '<|endoftext|>' } };
    expect((await read(files)).textEncoders[0]?.tokenizer.padId).toBe(0);
  });

  it.each([
    [{ _class_name: 'DDIMScheduler' }, { stepsOffset: 1, clipSample: false }],
    [
      { _class_name: 'DDIMScheduler', tensor_format: 'np' },
      { stepsOffset: 1, clipSample: false },
    ],
    [
      { _class_name: 'DDIMScheduler', clip_sample: true, steps_offset: 0 },
      { stepsOffset: 1, clipSample: false },
    ],
    // A request for ddim then gets the class's own default, as with from_config.
    [
      { _class_name: 'PNDMScheduler', skip_prk_steps: true },
      { stepsOffset: 1, clipSample: null },
    ],
  ])('older than these fields has the scheduler that its pipeline makes of %j', async (scheduler, expected) => {
    const file = 'scheduler/scheduler_config.json';
    const { config } = (await read({ ...models['Stable Diffusion 1.5'], [file]: scheduler })).scheduler;
    expect(config).toMatchObject(expected);
  });

  it('of another pipeline keeps the scheduler of its file', async () => {
    const files = {
      ...models['LCM Dreamshaper v7'],
      'scheduler/scheduler_config.json': { _class_name: 'LCMScheduler' },
    };
    expect((await read(files)).scheduler.config).toMatchObject({ stepsOffset: 0, clipSample: null });
  });

  it.each([
    ['0.8.1', 32, 512],
    ['0.10.0', 32, 256],
    ['0.8.1', 96, 768],
  ])('of diffusers %s with a sample_size of %i is %i pixels wide', async (_diffusers_version, sample_size, side) => {
    const files = {
      ...models['Stable Diffusion 1.5'],
      'unet/config.json': oldUnet({ _diffusers_version, sample_size }),
    };
    expect((await read(files)).card.sizes.default).toEqual({ width: side, height: side });
  });

  it('is refused with the name of the file that has an unknown token', async () => {
    const files = { ...models['Stable Diffusion 2.1'], 'tokenizer/special_tokens_map.json': { pad_token: '<pad>' } };
    const message = 'tokenizer/special_tokens_map.json: pad_token: "<pad>" is not in the vocabulary';
    await expect(read(files)).rejects.toThrow(message);
  });

  it("is refused with a field's value and the expected one", async () => {
    const { 'unet/config.json': unet, ...others } = models['SD-Turbo'];
    const files = { ...others, 'unet/config.json': { ...unet, class_embed_type: 'projection' } };
    const message = 'unet/config.json: class_embed_type: is not supported, expected null; it is "projection"';
    await expect(read(files)).rejects.toThrow(message);
  });
});
