import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/cogview4/model');

/** Faults that only the graphs show. model-families.test.ts tests faults of the other files. */
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

  it('loads if it is intact', async () => {
    expect(await failure()).toBeUndefined();
  });

  it.each(['text_encoder', 'transformer', 'vae_decoder'])('reports that its %s is cut short', async (part) => {
    await truncate(path(`${part}/model.onnx`), 50_000);
    const message = expect.stringMatching(`^${part}/model.onnx: is not a whole ONNX file: it is cut short`) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('reports that its text encoder lacks the output that is read', async () => {
    await edit('text_encoder/config.json', { num_hidden_layers: 40 });
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'text_encoder/model.onnx: has no output hidden_states.39, the output of the second-to-last of 40 layers (num_hidden_layers of text_encoder/config.json)',
    });
  });

  it("reports that its text encoder's width differs from the configuration", async () => {
    await edit('text_encoder/config.json', { hidden_size: 64 });
    await edit('transformer/config.json', { text_embed_dim: 64 });
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message:
        'text_encoder/model.onnx: returns [1, 32, 32] for input_ids [1, 32] of ids up to 599, expected [1, 32, 64] by the other model files',
    });
  });

  it("reports that its transformer's channels differ from the configuration", async () => {
    await edit('transformer/config.json', { in_channels: 4 });
    await edit('vae_decoder/config.json', { latent_channels: 4 });
    const message = expect.stringMatching(/^transformer\/model.onnx: does not accept hidden_states \[2, 4, 2, 2\]/);
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message: message as string });
  });

  it('reports another graph in place of the transformer or the text encoder', async () => {
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

  it("reports that its decoder's output size differs from the configuration", async () => {
    await edit('vae_decoder/config.json', { block_out_channels: [4, 8] });
    const message = expect.stringMatching(
      /^vae_decoder\/model.onnx: returns \[1, 3, 16, 16\] for latent_sample/,
    ) as string;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });
});
