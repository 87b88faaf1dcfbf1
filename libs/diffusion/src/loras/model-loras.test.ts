import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { loadPipeline } from '../pipelines/load-pipeline.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { LoraLayerNames, readLoraName, readTextEncoderLayer } from './lora-layers.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const name = 'stable-diffusion-2';
const good = readFileSync(join(vectors, 'loras', name, 'peft.safetensors'));
const layer = 'down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';
const [down, up] = [`unet.${layer}.lora_A.weight`, `unet.${layer}.lora_B.weight`];

/** Returns the name of a text encoder's tensor in kohya's convention. */
function te(end: 'down' | 'up'): string {
  return `lora_te_text_model_encoder_layers_0_mlp_fc1.lora_${end}.weight`;
}

/** Builds a `.safetensors` file of zeros, or of `fill`. */
function fileOf(shapes: Record<string, number[]>, { dtype = 'F32', fill = 0, metadata = {} } = {}): Buffer {
  const bytes = { F32: 4, F16: 2, BF16: 2, I64: 8 }[dtype] ?? 1;
  let at = 0;
  const entries = Object.entries(shapes).map(([tensor, shape]) => {
    const start = at;
    at += shape.reduce((product, side) => product * side, bytes);
    return [tensor, { dtype, shape, data_offsets: [start, at] }];
  });
  const header = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const data = dtype === 'F32' ? Buffer.from(new Float32Array(at / 4).fill(fill).buffer) : Buffer.alloc(at);
  return Buffer.concat([length, header, data]);
}

describe('a model’s adapters', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'darkroom-loras-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    cpSync(join(vectors, 'pipelines', name, 'model'), directory, { recursive: true });
    cpSync(join(vectors, 'loras', name, 'model.loras.onnx'), join(directory, 'unet/model.loras.onnx'));
    mkdirSync(join(directory, 'loras'));
    put('good', good);
  });
  const put = (id: string, content: string | Uint8Array): void =>
    writeFileSync(join(directory, `loras/${id}.safetensors`), content);

  const pair = { [down]: [4, 8], [up]: [8, 4] };
  const withMetadata = (facts: object) => fileOf(pair, { metadata: { lora_adapter_metadata: JSON.stringify(facts) } });

  it.each([
    ['an empty file', '', 'is no .safetensors file: it has 0 bytes'],
    [
      'another file type',
      'PK\u0003\u0004 and so on, a zip',
      /^is no \.safetensors file: its header claims \d+ bytes, expected at most 16777216/,
    ],
    ['one cut short in its header', good.subarray(0, 100), 'is cut short: it ends in its header'],
    [
      'a file truncated in its tensor data',
      good.subarray(0, -1),
      /^is cut short: it has 27463 bytes and needs at least 27464/,
    ],
    [
      'a header that is not JSON',
      Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 0, 0, 0]), Buffer.from('abcd')]),
      /not JSON/,
    ],
    ['nothing in it', fileOf({}), 'has no tensors'],
    [
      'a wider model',
      fileOf({ [down]: [4, 320], [up]: [320, 4] }),
      `${down}: has the shape [4, 320], expected [4, 16]`,
    ],
    [
      'a model with other layers',
      fileOf({ 'transformer.single_transformer_blocks.0.attn.to_q.lora_A.weight': [4, 16] }),
      /^transformer\.single_transformer_blocks\.0\.attn\.to_q\.lora_A\.weight: is for another model or layer, expected one of the model's \d+ layers/,
    ],
    [
      'only changes to a text encoder that takes no adapters',
      fileOf({ 'lora_te_text_model_encoder_layers_0_mlp_fc1.lora_down.weight': [4, 8] }),
      'changes nothing but text_encoder, which has no graph that takes them: tools/export/loras.py makes it',
    ],
    [
      'a text encoder that the model does not have',
      fileOf({ ...pair, 'lora_te2_text_model_encoder_layers_0_mlp_fc1.lora_down.weight': [4, 8] }),
      /^lora_te2_.*: changes text_encoder_2, which the model does not have$/,
    ],
    [
      'a convolution (LoCon)',
      fileOf({ 'lora_unet_down_blocks_0_resnets_0_conv1.lora_down.weight': [4, 4, 3, 3] }),
      /is for another model or layer/,
    ],
    [
      "LoHa with kohya's names",
      fileOf({ 'lora_unet_down_blocks_1_attentions_0_proj_in.hada_w1_a': [4, 4] }),
      /^has the tensor lora_unet_.*hada_w1_a, expected of each layer lora_A and lora_B/,
    ],
    [
      'no LoRA tensors',
      fileOf({ hada_w1_a: [4, 4] }),
      /^has the tensor hada_w1_a, expected of each layer lora_A and lora_B/,
    ],
    ['half of a pair', fileOf({ [down]: [4, 16] }), `${down}: its layer lacks lora_B (lora_up)`],
    [
      'two ranks in one layer',
      fileOf({ [down]: [4, 16], [up]: [16, 3] }),
      `${up}: has the shape [16, 3], expected [16, 4]`,
    ],
    ['a rank of 0', fileOf({ [down]: [0, 16], [up]: [16, 0] }), `${down}: has the shape [0, 16], expected [1, 16]`],
    ['a rank of 129', fileOf({ [down]: [129, 16], [up]: [16, 129] }), 'has rank 129, expected at most 128'],
    ['whole numbers', fileOf(pair, { dtype: 'I64' }), `${down}: has numbers of I64, expected F32, F16 or BF16`],
    [
      'a layer twice, under two names',
      fileOf({ [down]: [4, 16], [`lora_unet_${layer.replaceAll('.', '_')}.lora_down.weight`]: [4, 16] }),
      /is there twice, under two names$/,
    ],
    ['DoRA', withMetadata({ 'unet.use_dora': true }), 'lora_adapter_metadata: use_dora is true, expected false'],
    ['metadata that are none', withMetadata([]), "its metadata's lora_adapter_metadata is not what PEFT writes"],
  ])('with %s is refused with its file name, and the other adapters are loaded', async (_, content, problem) => {
    put('bad', content);
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card.loras).toEqual([{ id: 'good', rank: 4 }]);
    expect(loras.refused.map(({ file }) => file)).toEqual(['loras/bad.safetensors']);
    expect(card.refusedFiles).toEqual(loras.refused);
    const rest = loras.refused[0]!.reason;
    const isSaid = typeof problem === 'string' ? rest === problem : problem.test(rest);
    expect([rest, isSaid]).toEqual([rest, true]);
  });

  it('are skipped if they do not fit: the model is served, and its description gives the reason', async () => {
    put('bad', '');
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    expect(pipeline.components.find(({ part }) => part === 'unet')?.remark).toBe(
      'left out: loras/bad.safetensors: is no .safetensors file: it has 0 bytes',
    );
  });

  it('are applied without their changes to a text encoder that takes no adapters, and report that', async () => {
    put('both', fileOf({ ...pair, [down]: [4, 16], [up]: [16, 4], [te('down')]: [4, 8], [te('up')]: [8, 4] }));
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card.loras).toEqual([
      { id: 'both', rank: 4, leftOut: ['text_encoder'] },
      { id: 'good', rank: 4 },
    ]);
    expect(loras.refused).toEqual([]);
  });

  it('get a generated id and keep their name if the name is not a valid id', async () => {
    for (const each of ['My Style (v2)', 'My-Style-v2', '水彩', '.hidden', 'a'.repeat(90), 'v1.5_ok']) put(each, good);
    writeFileSync(join(directory, 'loras/UPPER.SAFETENSORS'), good);
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(loras.refused).toEqual([]);
    const names = new Map(card.loras!.map(({ id, name: called = id }) => [called, id]));
    expect(names.size).toBe(8);
    expect(new Set(names.values()).size).toBe(8);
    for (const each of ['good', 'My-Style-v2', 'v1.5_ok', 'UPPER']) expect(names.get(each)).toBe(each);
    for (const id of names.values()) expect(id).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
  });

  it("are refused if the file name equals another adapter's generated id", async () => {
    put('My Style', good);
    const [taken] = (await readModelDirectory(directory, { id: 'tiny' })).card.loras!.filter((each) => each.name);
    put(taken!.id, good);
    const { loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(loras.refused).toEqual([
      { file: expect.stringMatching(/^loras\/My/) as string, reason: expect.stringMatching(/rename one$/) as string },
    ]);
  });

  it('are refused if the model has no graph that takes adapters', async () => {
    rmSync(join(directory, 'unet/model.loras.onnx'));
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card).not.toHaveProperty('loras');
    expect(loras.refused).toEqual([
      {
        file: 'unet/model.loras.onnx',
        reason: 'is missing; it takes the adapters: create it with tools/export/loras.py',
      },
    ]);
    rmSync(join(directory, 'loras'), { recursive: true });
    expect((await readModelDirectory(directory, { id: 'tiny' })).loras.refused).toEqual([]);
  });

  it('are skipped if the graph for adapters was made from another file of the same size', async () => {
    const file = join(directory, 'unet/model.onnx');
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card).not.toHaveProperty('loras');
    expect(loras.refused).toEqual([
      {
        file: 'unet/model.loras.onnx',
        reason: 'was made from another model.onnx: run tools/export/loras.py again',
      },
    ]);
  });

  it('are skipped if the graph for adapters is damaged', async () => {
    writeFileSync(
      join(directory, 'unet/model.loras.onnx'),
      readFileSync(join(directory, 'unet/model.loras.onnx')).subarray(0, 999),
    );
    const { loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(loras.refused).toEqual([
      {
        file: 'unet/model.loras.onnx',
        reason: expect.stringMatching(/^is not a whole ONNX file: it is cut short/) as string,
      },
    ]);
  });

  const input = { prompt: 'a cat', negativePrompt: '', width: 32, height: 32, n: 1, numInferenceSteps: 1, seed: 1 };
  const more = { guidanceScale: 1, guidanceRescale: 0, scheduler: 'ddim', previewEvery: 0 };

  it('with values that are not finite fail only the requests that use them', async () => {
    put('nan', fileOf({ [down]: [4, 16], [up]: [16, 4] }, { fill: Number.NaN }));
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    const ask = (id: string) => pipeline.createRows({ id, input: { ...input, ...more, loras: [{ id, scale: 1 }] } });
    await expect(ask('nan')).rejects.toMatchObject({
      code: 'engine_failed',
      message: 'loras/nan.safetensors has values that are not finite',
    });
    rmSync(join(directory, 'loras/good.safetensors'));
    await expect(ask('good')).rejects.toMatchObject({ message: 'loras/good.safetensors could not be read' });
    put('good', good);
    expect(await ask('good')).toHaveLength(1);
  });
});

describe('layer names of adapters', () => {
  const names = [
    layer,
    `${layer.slice(0, -4)}to_out.0`,
    'mid_block.attentions.0.proj_in',
    'up_blocks.1.attentions.2.proj_out',
  ];
  const known = new LoraLayerNames(names.map((each) => ({ name: each, inputs: 1, outputs: 1 })));

  it.each([
    [`unet.${layer}.lora_A.weight`, layer, 'down'],
    [`base_model.model.unet.${layer}.lora_B.weight`, layer, 'up'],
    [`lora_unet_${layer.replaceAll('.', '_')}.alpha`, layer, 'alpha'],
    [`unet.${layer.replace('.to_q', '.processor.to_q')}_lora.up.weight`, layer, 'up'],
    [`unet.${layer.replace('.to_q', '.processor.to_out')}_lora.down.weight`, names[1], 'down'],
    [`unet.${layer}.lora.down.weight`, layer, 'down'],
    // Block names of SDXL in Stability's code.
    ['lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q.lora_down.weight', layer, 'down'],
    ['lora_unet_middle_block_1_proj_in.lora_up.weight', names[2], 'up'],
    ['lora_unet_output_blocks_5_1_proj_out.lora_up.weight', names[3], 'up'],
  ])('%s', (tensor, expected, role) => {
    const read = readLoraName(tensor)!;
    expect([known.find(read.layer)?.name, read.role]).toEqual([expected, role]);
  });

  it('are not found if the model has no such layer', () => {
    expect(readLoraName('unet.conv_in.weight')).toBeUndefined();
    expect(known.find('lora_unet_input_blocks_9_1_proj_in')).toBeUndefined();
  });
});

describe('text encoder layer names of adapters', () => {
  const known = new LoraLayerNames([{ name: 'encoder.layers.0.self_attn.q_proj', inputs: 1, outputs: 1 }]);
  it.each([
    ['lora_te_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight', 0],
    ['lora_te1_text_model_encoder_layers_0_self_attn_q_proj.alpha', 0],
    ['lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight', 1],
    ['lora_te3_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight', 2],
    ['text_encoder.text_model.encoder.layers.0.self_attn.q_proj.lora_A.weight', 0],
    ['text_encoder_2.text_model.encoder.layers.0.self_attn.q_proj.lora_B.weight', 1],
    ['text_encoder.text_model.encoder.layers.0.self_attn.q_proj.lora_linear_layer.up.weight', 0],
    ['base_model.model.text_encoder.encoder.layers.0.self_attn.q_proj.lora_A.weight', 0],
  ])('%s', (tensor, at) => {
    const read = readTextEncoderLayer(readLoraName(tensor)!.layer);
    expect(read?.at).toBe(at);
    expect(known.find(read!.layer)?.name).toBe('encoder.layers.0.self_attn.q_proj');
  });

  it('do not include layers of the denoiser', () => {
    for (const tensor of [down, 'lora_unet_mid_block_attentions_0_proj_in.lora_up.weight'])
      expect(readTextEncoderLayer(readLoraName(tensor)!.layer)).toBeUndefined();
  });
});
