import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createTextCodec } from '@darkroom/kinds';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { loadTextPipeline } from '../pipelines/load-text-pipeline.ts';
import { textInput, TextTable } from '../testing/text-table.ts';
import { readTextModelDirectory } from './text-model-directory.ts';

const models = resolve(import.meta.dirname, '../../../../models');

const unsupported = (message: string) => ({
  code: 'model_unsupported',
  message: expect.stringContaining(message) as string,
});

describe('the card of a text model', () => {
  it('describes emoji-writer', async () => {
    const { card, codecDocument } = await readTextModelDirectory(join(models, 'emoji-writer'));
    expect(card).toEqual({
      id: 'emoji-writer',
      created: expect.any(Number) as number,
      ownedBy: 'darkroom',
      kind: 'text',
      pipeline: 'AutoregressivePipeline',
      mode: 'autoregressive',
      maxModelTokens: 256,
      vocabularySize: 6144,
      codec: createHash('sha256').update(codecDocument).digest('hex'),
      hasChatTemplate: true,
      hasTools: false,
      defaults: { maxTokens: 24, temperature: 0, topP: 1, topK: 0 },
      deterministic: { is: true },
    });
    expect(createTextCodec(codecDocument).decode([68])).toBe('a');
  });

  it.each([
    [['cuda'], 'model_fp16.onnx'],
    [['cpu'], 'model_int8.onnx'],
  ] as const)('selects by default, on %j, %s', async (devices, file) => {
    const directory = await mkdtemp(join(tmpdir(), 'darkroom-writer-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await cp(join(models, 'emoji-writer'), directory, { recursive: true });
    await cp(join(directory, 'onnx/model_int8.onnx'), join(directory, 'onnx/model_fp16.onnx'));
    const { graph } = await readTextModelDirectory(directory, { id: 'writer', devices });
    expect(graph).toBe(`onnx/${file}`);
  });

  it('describes the blocks of emoji-writer-diffusion', async () => {
    const { card, config } = await readTextModelDirectory(join(models, 'emoji-writer-diffusion'), { id: 'other' });
    expect(card).toMatchObject({
      id: 'other',
      pipeline: 'BlockDiffusionPipeline',
      mode: 'block_diffusion',
      block: { size: 8, confidenceThreshold: 0.9 },
    });
    expect(config).toMatchObject({ endIds: [2], block: { maskId: 3 } });
  });

  it('limits maxModelTokens to maxTokens', async () => {
    const { card } = await readTextModelDirectory(join(models, 'emoji-writer'), { maxTokens: 40 });
    expect(card.maxModelTokens).toBe(40);
  });

  it.each(['emoji-writer', 'emoji-writer-diffusion'])('reports %s as deterministic', async (name) => {
    const pipeline = await loadTextPipeline({ directory: join(models, name), threads: 1 });
    expect(pipeline.card.deterministic).toEqual({ is: true });
    expect(pipeline.components).toEqual([{ part: 'onnx', device: 'cpu', refusals: [] }]);
    await pipeline.dispose();
  });
});

/** Writes a sampled text, and returns it with the vocabulary size on the card. */
async function write(directory: string) {
  const pipeline = await loadTextPipeline({ directory, id: 'writer', threads: 1 });
  const { card } = pipeline;
  const sampled = textInput({ prompt: [5, 6, 7], temperature: 1.5, maxTokens: 40, ignoreEos: true });
  const { text } = await new TextTable(pipeline).write(sampled);
  await pipeline.dispose();
  return { size: card.vocabularySize, text };
}

describe('a text model', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-text-'));
    await cp(join(models, 'emoji-writer-diffusion'), directory, { recursive: true });
  });
  afterEach(() => rm(directory, { recursive: true }));

  async function change(file: string, changes: Record<string, unknown>): Promise<void> {
    const json = JSON.parse(await readFile(join(directory, file), 'utf8')) as Record<string, unknown>;
    await writeFile(join(directory, file), JSON.stringify({ ...json, ...changes }));
  }
  const failure = (options = {}) =>
    loadTextPipeline({ directory, id: 'broken', threads: 1, ...options }).then(
      () => expect.fail('it was loaded'),
      (error: unknown) => error,
    );
  it.each([
    [{ model_type: 'mamba' }, 'config.json: model_type: mamba is not supported; supported are llama, qwen2, '],
    [{ vocab_size: 2000 }, 'tokenizer.json: has 6144 tokens, which does not match config.json: vocab_size 2000'],
    [
      { vocab_size: 6146 },
      'model_int8.onnx: logits is [batch_size, sequence_length, 6144], expected by config.json […, …, 6146]',
    ],
    [{ num_hidden_layers: 5 }, 'model_int8.onnx: has caches of 4 layers, expected num_hidden_layers in config.json, 5'],
    [
      { num_key_value_heads: 3 },
      'past_key_values.0.key is [batch_size, 2, past_sequence_length, 32], expected by config.json',
    ],
    [{ head_dim: 64 }, 'past_key_values.0.key is [batch_size, 2, past_sequence_length, 32], expected by config.json'],
    [{ block_size: undefined }, 'config.json: block_size: is missing'],
    [{ mask_token_id: 9999 }, 'config.json: mask_token_id: 9999 is not below vocab_size, 6144'],
    [{ max_position_embeddings: 'many' }, 'config.json: max_position_embeddings: '],
  ])('is rejected with file and values if config.json has %j', async (changes, message) => {
    await change('config.json', changes);
    expect(await failure()).toMatchObject(unsupported(message));
  });

  it.each(['generation_config.json', 'config.json'])(
    'is rejected if an end token in %s is not in the tokenizer',
    async (file) => {
      await change(file, { eos_token_id: [2, 6144] });
      expect(await failure()).toHaveProperty('message', `${file}: eos_token_id: 6144 is not a token of tokenizer.json`);
    },
  );

  it('is rejected if its tokenizer belongs to another model', async () => {
    const { model } = JSON.parse(await readFile(join(directory, 'tokenizer.json'), 'utf8')) as {
      model: { vocab: Record<string, number> };
    };
    const few = (count: number) =>
      change('tokenizer.json', {
        model: {
          ...model,
          vocab: Object.fromEntries(Object.entries(model.vocab).filter(([, id]) => id < count)),
          merges: [],
        },
      });
    await few(4);
    expect(await failure()).toMatchObject(
      unsupported('tokenizer.json: has 4 tokens, which does not match config.json: vocab_size 6144'),
    );
    await few(6136);
    expect((await readTextModelDirectory(directory, { id: 'padded' })).card.vocabularySize).toBe(6136);
  });

  it('may have special tokens without logits, and never writes them', async () => {
    const { added_tokens: known } = JSON.parse(await readFile(join(directory, 'tokenizer.json'), 'utf8')) as {
      added_tokens: object[];
    };
    const more = (special: boolean) =>
      change('tokenizer.json', { added_tokens: [...known, { ...known[0], id: 6144, content: '<image>', special }] });
    await more(true);
    const written = await write(directory);
    expect(written).toEqual(await write(join(models, 'emoji-writer-diffusion')));
    expect(written.size).toBe(6144);
    await more(false);
    expect(await failure()).toMatchObject(
      unsupported('tokenizer.json: has 6145 tokens, which does not match config.json: vocab_size 6144'),
    );
  });

  it.each(['config.json', 'tokenizer.json'])('is rejected without %s', async (file) => {
    await rm(join(directory, file));
    expect(await failure()).toMatchObject(unsupported(`${file}: is missing`));
  });

  it('lists its graphs if the requested one is missing', async () => {
    const parts = {};
    expect(await failure({ dtypes: { all: 'fp32', parts } })).toMatchObject(
      unsupported('onnx: has no graph in fp32; there is model_int8.onnx'),
    );
    expect(await failure({ dtypes: { all: 'auto', parts: { unet: 'int8' } } })).toMatchObject(
      unsupported('onnx: has no unet: a text model is one graph'),
    );
    await rm(join(directory, 'onnx/model_int8.onnx'));
    expect(await failure()).toMatchObject(unsupported('onnx: has none of model_int8.onnx, model.onnx, '));
  });

  it('is rejected with the file name if its graph is truncated', async () => {
    const graph = join(directory, 'onnx/model_int8.onnx');
    await writeFile(graph, (await readFile(graph)).subarray(0, 100_000));
    expect(await failure()).toMatchObject({
      code: 'engine_failed',
      message: expect.stringContaining('onnx/model_int8.onnx: a model file could not be loaded') as string,
    });
  });

  it('takes its defaults from generation_config.json', async () => {
    await change('generation_config.json', { do_sample: true, temperature: 0.7, top_p: 0.8, top_k: 20 });
    const { card } = await readTextModelDirectory(directory, { id: 'a' });
    expect(card.defaults).toEqual({ maxTokens: 24, temperature: 0.7, topP: 0.8, topK: 20 });
    await rm(join(directory, 'generation_config.json'));
    const without = await readTextModelDirectory(directory, { id: 'a' });
    expect(without.card.defaults).toEqual({ maxTokens: 1024, temperature: 1, topP: 1, topK: 0 });
    expect(without.config.endIds).toEqual([2]);
  });
});
