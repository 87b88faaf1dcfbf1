import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/cogview4/model');

/** What only the graphs can say. The rest is said by the files beside them: model-families.test.ts. */
describe('a damaged CogView4', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'darkroom-cogview4-')), 'tiny');
    await cp(source, directory, { recursive: true });
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  const path = (file: string): string => join(directory, file);
  async function edit(file: string, change: Record<string, unknown>) {
    const json = JSON.parse(await readFile(path(file), 'utf8')) as Record<string, unknown>;
    await writeFile(path(file), JSON.stringify({ ...json, ...change }));
  }
  const failure = async () => {
    const error: unknown = await loadPipeline({ directory, threads: 1 }).then(
      async (pipeline) => pipeline.dispose(),
      (error: unknown) => error,
    );
    return error as { code: string; message: string } | undefined;
  };

  it('loads when nothing is wrong with it', async () => {
    expect(await failure()).toBeUndefined();
  });

  it.each(['text_encoder', 'transformer', 'vae_decoder'])('whose %s is cut short says so', async (part) => {
    await truncate(path(`${part}/model.onnx`), 50_000);
    const message = expect.stringMatching(`^${part}/model.onnx: is not a whole ONNX file: it is cut short`) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('without the layer that is read says so', async () => {
    await edit('text_encoder/config.json', { num_hidden_layers: 40 });
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'text_encoder/model.onnx: has no output hidden_states.39, what the second last of 40 layers gives (num_hidden_layers of text_encoder/config.json)',
    });
  });

  it('whose text encoder is of another width than its configuration says, says so', async () => {
    await edit('text_encoder/config.json', { hidden_size: 64 });
    await edit('transformer/config.json', { text_embed_dim: 64 });
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'text_encoder/model.onnx: gives [1, 32, 32] for input_ids [1, 32] of ids up to 599; [1, 32, 64] is what the other files of the model say',
    });
  });

  it('whose transformer has other channels than its configuration says, says so', async () => {
    await edit('transformer/config.json', { in_channels: 4 });
    await edit('vae_decoder/config.json', { latent_channels: 4 });
    const message = expect.stringMatching(/^transformer\/model.onnx: does not take hidden_states \[2, 4, 2, 2\]/);
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message: message as string });
  });

  it('with another graph in place of the transformer, or of the text encoder, says so', async () => {
    await cp(path('vae_decoder/model.onnx'), path('transformer/model.onnx'));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'transformer/model.onnx: has an input latent_sample; supported are exactly hidden_states, timestep, encoder_hidden_states, original_size, target_size, crop_coords',
    });
    await cp(path('vae_decoder/model.onnx'), path('text_encoder/model.onnx'));
    const message = expect.stringMatching(/^text_encoder\/model.onnx: has no output hidden_states.2/) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('whose decoder is of another size than its configuration says, says so', async () => {
    await edit('vae_decoder/config.json', { block_out_channels: [4, 8] });
    const message = expect.stringMatching(
      /^vae_decoder\/model.onnx: gives \[1, 3, 16, 16\] for latent_sample/,
    ) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });
});
