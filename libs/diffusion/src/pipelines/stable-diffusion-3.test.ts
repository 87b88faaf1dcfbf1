import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadPipeline } from './load-pipeline.ts';
import type { ImagePipeline } from '../image/image-row.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-3/model');

describe('Stable Diffusion 3', () => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory: source, id: 'tiny', threads: 1 });
  });
  afterAll(() => pipeline.dispose());

  const usual = { prompt: 'a cat', negativePrompt: '', width: 32, height: 32, n: 1, seed: 7, previewEvery: 0 };
  const rowOf = async (change: Record<string, unknown> = {}) => {
    const input = { ...usual, numInferenceSteps: 3, guidanceScale: 4, scheduler: 'flow_match_euler', ...change };
    return (await pipeline.createRows({ id: 'request', input }))[0]!;
  };

  const embeddingOf = async (prompt: string) => (await rowOf({ prompt })).prompt.conditioning['encoder_hidden_states']!;

  it('encodes an empty negative prompt as a text, and none without guidance', async () => {
    const { negativePrompt } = await rowOf();
    const { prompt } = await rowOf({ prompt: '' });
    expect(negativePrompt).toEqual(prompt);
    expect((await rowOf({ guidanceScale: 1 })).negativePrompt).toBeUndefined();
  });

  it("reads a long prompt's tokens beyond CLIP's limit with T5", async () => {
    const [clipTokens, width] = [77, 32];
    const start = 'a cat and a dog and '.repeat(14);
    const [first, second] = [await embeddingOf(`${start} a house`), await embeddingOf(`${start} a river`)];
    expect(first).toHaveLength((clipTokens + 256) * width);
    expect(first.subarray(0, clipTokens * width)).toEqual(second.subarray(0, clipTokens * width));
    expect(first.subarray(clipTokens * width)).not.toEqual(second.subarray(clipTokens * width));
  });

  it.each([
    [{ width: 36 }, 'width must be a multiple of 8'],
    [{ height: 56 }, 'height must be 16 … 48, not 56'],
    [{ scheduler: 'ddim' }, 'scheduler: ddim cannot serve this model; expected one of unipc, flow_match_euler'],
  ])('refuses %j', async (change, message) => {
    await expect(rowOf(change)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
  });
});

describe('a damaged Stable Diffusion 3', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'darkroom-damaged-sd3-')), 'tiny');
    await cp(source, directory, { recursive: true });
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  const path = (file: string): string => join(directory, file);
  const failure = () =>
    loadPipeline({ directory, threads: 1 }).then(
      async (pipeline) => pipeline.dispose(),
      (error: { code: string; message: string }) => error,
    );
  async function edit(file: string, change: Record<string, unknown>) {
    const json = JSON.parse(await readFile(path(file), 'utf8')) as Record<string, unknown>;
    await writeFile(path(file), JSON.stringify({ ...json, ...change }));
  }

  it.each(['text_encoder_2', 'text_encoder_3', 'transformer'])(
    'reports that the graph of %s is cut short',
    async (part) => {
      await truncate(path(`${part}/model.onnx`), 20_000);
      const message = expect.stringMatching(`^${part}/model.onnx: is not a whole ONNX file: it is cut short`) as string;
      expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
    },
  );

  it.each([
    [
      'text_encoder_3/model.onnx',
      'text_encoder/model.onnx',
      'text_encoder/model.onnx: has no output text_embeds; exports of CLIPTextModelWithProjection have it',
    ],
    [
      'text_encoder_2/model.onnx',
      'text_encoder/model.onnx',
      'text_encoder/model.onnx: returns [1, 77, 12] for input_ids [1, 77] of ids up to 1447, expected [1, 77, 8] by the other model files',
    ],
    [
      'text_encoder/model.onnx',
      'text_encoder_3/model.onnx',
      'text_encoder_3/model.onnx: does not accept input_ids [1, 256] of ids up to 311, which the other model files require',
    ],
    [
      'vae_decoder/model.onnx',
      'transformer/model.onnx',
      'transformer/model.onnx: has an input latent_sample; supported are exactly hidden_states, timestep, encoder_hidden_states, pooled_projections',
    ],
  ])('reports %s in place of %s', async (other, file, message) => {
    await cp(path(other), path(file));
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('reports a transformer whose patches differ from its configuration', async () => {
    await edit('transformer/config.json', { patch_size: 1, sample_size: 6 });
    const takes = 'hidden_states [2, 16, 1, 1] and encoder_hidden_states [2, 333, 32] and pooled_projections [2, 22]';
    const message = `transformer/model.onnx: does not accept ${takes}, which the other model files require`;
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });

  it('reports a tokenizer that cannot be run', async () => {
    await edit('tokenizer_3/tokenizer.json', { pre_tokenizer: { type: 'Telepathy' } });
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: expect.stringMatching(/^tokenizer_3\/tokenizer\.json: cannot be used: /) as string,
    });
  });
});
