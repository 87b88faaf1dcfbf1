import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { loadPipeline } from '../pipelines/load-pipeline.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { LoraLayerNames, readLoraName } from './lora-layers.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const name = 'stable-diffusion-2';
const good = readFileSync(join(vectors, 'loras', name, 'peft.safetensors'));
const layer = 'down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';
const [down, up] = [`unet.${layer}.lora_A.weight`, `unet.${layer}.lora_B.weight`];

/** A `.safetensors` file of zeros, or of `fill`. */
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
      'another kind of file',
      'PK\u0003\u0004 and so on, a zip',
      /^is no \.safetensors file: its header would have \d+ bytes/,
    ],
    ['one cut short in its header', good.subarray(0, 100), 'is cut short: it ends in its header'],
    [
      'one cut short in its numbers',
      good.subarray(0, -1),
      /^is cut short: it has 27463 bytes and needs at least 27464/,
    ],
    [
      'a header that is no JSON',
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
      'a text encoder in it',
      fileOf({ 'lora_te_text_model_encoder_layers_0_mlp_fc1.lora_down.weight': [4, 8] }),
      /changes a text encoder, expected changes of the UNet or transformer only/,
    ],
    [
      'no LoRA in it',
      fileOf({ hada_w1_a: [4, 4] }),
      /^has the tensor hada_w1_a, expected of each layer lora_A and lora_B/,
    ],
    ['half of a pair', fileOf({ [down]: [4, 16] }), `${down}: its layer lacks lora_B (lora_up)`],
    [
      'two ranks in a pair',
      fileOf({ [down]: [4, 16], [up]: [16, 3] }),
      `${up}: has the shape [16, 3], expected [16, 4]`,
    ],
    ['a rank of 0', fileOf({ [down]: [0, 16], [up]: [16, 0] }), `${down}: has the shape [0, 16], expected [1, 16]`],
    ['a rank of 129', fileOf({ [down]: [129, 16], [up]: [16, 129] }), 'has rank 129, expected at most 128'],
    ['whole numbers', fileOf(pair, { dtype: 'I64' }), `${down}: has numbers of I64, expected F32, F16 or BF16`],
    [
      'a layer under two names',
      fileOf({ [down]: [4, 16], [`lora_unet_${layer.replaceAll('.', '_')}.lora_down.weight`]: [4, 16] }),
      /is there twice, under two names$/,
    ],
    ['DoRA', withMetadata({ 'unet.use_dora': true }), 'lora_adapter_metadata: use_dora is true, expected false'],
    ['metadata that are none', withMetadata([]), "its metadata's lora_adapter_metadata is not what PEFT writes"],
  ])('with %s is refused with its file, and the others are there', async (_, content, problem) => {
    put('bad', content);
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card.loras).toEqual([{ id: 'good', rank: 4 }]);
    const [said] = loras.problems;
    expect(loras.problems).toHaveLength(1);
    expect(said).toMatch(/^loras\/bad\.safetensors: /);
    const rest = said!.slice('loras/bad.safetensors: '.length);
    const isSaid = typeof problem === 'string' ? rest === problem : problem.test(rest);
    expect([rest, isSaid]).toEqual([rest, true]);
  });

  it('are left out aloud: the model is served, and its parts say why', async () => {
    put('bad name', good);
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    expect(pipeline.components.find(({ part }) => part === 'unet')?.remark).toBe(
      'left out: loras/bad name.safetensors: its name must be 1–64 characters of A–Z, a–z, 0–9, ".", "_" and "-"',
    );
  });

  it('need the graph that takes them', async () => {
    rmSync(join(directory, 'unet/model.loras.onnx'));
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card).not.toHaveProperty('loras');
    expect(loras.problems).toEqual([
      'loras: unet/model.loras.onnx is missing, which takes them: tools/export/loras.py makes it',
    ]);
    rmSync(join(directory, 'loras'), { recursive: true });
    expect((await readModelDirectory(directory, { id: 'tiny' })).loras.problems).toEqual([]);
  });

  it('are left out where that graph was made of another file of the same size', async () => {
    const file = join(directory, 'unet/model.onnx');
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    const { card, loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(card).not.toHaveProperty('loras');
    expect(loras.problems).toEqual([
      'unet/model.loras.onnx: was made of another model.onnx: tools/export/loras.py makes it anew',
    ]);
  });

  it('are left out where that graph is damaged', async () => {
    writeFileSync(
      join(directory, 'unet/model.loras.onnx'),
      readFileSync(join(directory, 'unet/model.loras.onnx')).subarray(0, 999),
    );
    const { loras } = await readModelDirectory(directory, { id: 'tiny' });
    expect(loras.problems).toEqual([
      expect.stringMatching(/^unet\/model\.loras\.onnx: is not a whole ONNX file: it is cut short/),
    ]);
  });

  const input = { prompt: 'a cat', negativePrompt: '', width: 32, height: 32, n: 1, numInferenceSteps: 1, seed: 1 };
  const more = { guidanceScale: 1, guidanceRescale: 0, scheduler: 'ddim', previewEvery: 0 };

  it('whose numbers are none fail the request that asks for them, and no other', async () => {
    put('nan', fileOf({ [down]: [4, 16], [up]: [16, 4] }, { fill: Number.NaN }));
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    const ask = (id: string) => pipeline.createRows({ id, input: { ...input, ...more, loras: [{ id, scale: 1 }] } });
    await expect(ask('nan')).rejects.toMatchObject({
      code: 'engine_failed',
      message: 'loras/nan.safetensors has values that are not numbers',
    });
    rmSync(join(directory, 'loras/good.safetensors'));
    await expect(ask('good')).rejects.toMatchObject({ message: 'loras/good.safetensors could not be read any more' });
    put('good', good);
    expect(await ask('good')).toHaveLength(1);
  });
});

describe('names of layers', () => {
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
    // As Stability's code names the blocks of SDXL.
    ['lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q.lora_down.weight', layer, 'down'],
    ['lora_unet_middle_block_1_proj_in.lora_up.weight', names[2], 'up'],
    ['lora_unet_output_blocks_5_1_proj_out.lora_up.weight', names[3], 'up'],
  ])('%s', (tensor, expected, role) => {
    const read = readLoraName(tensor)!;
    expect([known.find(read.layer)?.name, read.role]).toEqual([expected, role]);
  });

  it('that are no layer’s are none', () => {
    expect(readLoraName('unet.conv_in.weight')).toBeUndefined();
    expect(known.find('lora_unet_input_blocks_9_1_proj_in')).toBeUndefined();
  });
});
