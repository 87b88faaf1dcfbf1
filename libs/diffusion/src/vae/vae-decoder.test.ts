/** Tests tiled decoding with exported decoders: the embedded model's, one with attention, one with 16 channels. */
import { mapNonEmpty } from '@darkroom/core';
import { cpSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { loadOnnxSession, type OnnxSession } from '@darkroom/runtime';
import { dilateConvolution, externalizeWeights } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TorchGenerator } from '../random/torch-generator.ts';
import { loadPipeline } from '../pipelines/load-pipeline.ts';
import { interleaveSample } from '../image/latents-to-rgb.ts';
import { VaeDecoder } from './vae-decoder.ts';

const root = resolve(import.meta.dirname, '../../../..');
const emojis = { path: join(root, 'models/emoji-sd/vae_decoder/model_int8.onnx'), factor: 8 };
const tiny = {
  path: join(root, 'tools/golden/vectors/pipelines/stable-diffusion-xl/model/vae_decoder/model.onnx'),
  factor: 2,
};
const sixteenChannels = {
  path: join(root, 'tools/golden/vectors/pipelines/stable-diffusion-3/model/vae_decoder/model.onnx'),
  factor: 4,
};
const encoder = join(root, 'models/emoji-sd/text_encoder/model_int8.onnx');

async function createDecoder({ path, factor }: { path: string; factor: number }, side: number, graph = path) {
  const session = await loadOnnxSession({ file: path, threads: 1 });
  onTestFinished(() => session.dispose());
  const parts = { bytes: 0, disposed: 0, error: 1 };
  const loadPart = async (file: Uint8Array): Promise<OnnxSession> => {
    parts.bytes += file.length;
    const part = await loadOnnxSession({ file, threads: 1 });
    return {
      ...part,
      async runForAll(feeds, outputs, into) {
        const results = await part.runForAll(feeds, outputs, into);
        return mapNonEmpty(results, ({ data, dims }) => ({ data: data.map((value) => value * parts.error), dims }));
      },
      dispose: () => part.dispose().finally(() => (parts.disposed += 1)),
    };
  };
  const decoder = new VaeDecoder({ file: 'vae', path: graph, session, loadPart, factor, maxUntiledPixels: side ** 2 });
  return { decoder, session, parts };
}

function noise(dims: readonly number[]): Float32Array {
  const latents = new Float32Array(dims.reduce((product, side) => product * side, 1));
  new TorchGenerator({ seed: 7 }).fillNormal(latents);
  return latents.map((value) => value * 2);
}

const maxPixelDifference = (left: Uint8Array, right: Uint8Array): number =>
  left.reduce((worst, value, at) => Math.max(worst, Math.abs(value - right[at]!)), 0);

async function decodeBoth(decoder: VaeDecoder, session: OnnxSession, dims: readonly [number, number, number]) {
  const latents = noise(dims);
  const untiled = await session.run({ latent_sample: { data: latents, dims: [1, ...dims] } }, 'sample');
  return { decoded: interleaveSample(await decoder.decode(latents, dims)), untiled: interleaveSample(untiled.data) };
}

describe('a VAE decoder that decodes in tiles', () => {
  it.each([
    ['emojis', emojis, 64, [4, 16, 16]],
    ['emojis', emojis, 100, [4, 20, 16]],
    // Test more shapes with decoders that take a tenth of the time.
    ['attention', tiny, 8, [4, 16, 16]],
    ['attention', tiny, 8, [4, 24, 14]],
    ['attention', tiny, 16, [4, 32, 32]],
    ['attention', tiny, 25, [4, 12, 40]],
    ['attention', tiny, 25, [4, 40, 12]],
    ['attention', tiny, 24, [4, 36, 36]],
    ['16 channels', sixteenChannels, 16, [16, 24, 16]],
  ] as const)('decodes the same image in tiles as in one call with %s', async (_name, model, side, dims) => {
    const { decoder, session, parts } = await createDecoder(model, side);
    await decoder.tryTiles([dims[0], 8, 8]);
    expect(decoder.remark).toBeUndefined();
    const { decoded, untiled } = await decodeBoth(decoder, session, dims);
    // One of 255 levels: a different order of summation can change the rounding.
    expect(maxPixelDifference(decoded, untiled)).toBeLessThanOrEqual(1);
    expect(parts.disposed).toBeGreaterThan(0);
  });

  it('decodes an image of at most maxUntiledPixels in one call, to the same bytes', async () => {
    const { decoder, session, parts } = await createDecoder(emojis, 128);
    await decoder.tryTiles([4, 8, 8]);
    parts.bytes = 0;
    const { decoded, untiled } = await decodeBoth(decoder, session, [4, 16, 16]);
    expect([Buffer.compare(decoded, untiled), parts.bytes]).toEqual([0, 0]);
  });

  it('reads weights from a file beside the graph', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-vae-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'model.onnx');
    cpSync(emojis.path, path);
    externalizeWeights(path, 'model.onnx_data');
    const { decoder, session } = await createDecoder({ path, factor: 8 }, 64);
    await decoder.tryTiles([4, 8, 8]);
    const { decoded, untiled } = await decodeBoth(decoder, session, [4, 16, 16]);
    expect(decoder.remark).toBeUndefined();
    expect(maxPixelDifference(decoded, untiled)).toBeLessThanOrEqual(1);
  });

  it('fails, instead of returning a wrong image, if the weights file was truncated after loading', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-vae-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'model.onnx');
    cpSync(tiny.path, path);
    externalizeWeights(path, 'model.onnx_data');
    const { decoder } = await createDecoder(tiny, 8, path);
    await decoder.tryTiles([4, 8, 8]);
    expect(decoder.remark).toBeUndefined();
    const weights = join(directory, 'model.onnx_data');
    truncateSync(weights, statSync(weights).size - 64);
    const dims = [4, 16, 16] as const;
    await expect(decoder.decode(noise(dims), dims)).rejects.toThrow(/cut short/);
  });

  it.each([
    ['belongs to another component', encoder, /cannot be tiled: it has several inputs or outputs$/],
    ['is truncated', 'truncated', /cannot be tiled: it is cut short/],
  ])('decodes in one call, and reports why, if the graph %s', async (_what, path, reason) => {
    const graph = path === 'truncated' ? truncatedCopy() : path;
    const { decoder, session } = await createDecoder(tiny, 8, graph);
    await decoder.tryTiles([4, 8, 8]);
    expect(decoder.remark).toMatch(reason);
    const { decoded, untiled } = await decodeBoth(decoder, session, [4, 16, 16]);
    expect(Buffer.compare(decoded, untiled)).toBe(0);
  });

  it('decodes in one call, and reports why, if the tiles give a different result', async () => {
    const { decoder, session, parts } = await createDecoder(emojis, 64);
    parts.error = 1.02;
    await decoder.tryTiles([4, 8, 8]);
    expect(decoder.remark).toMatch(/cannot be tiled: tiles differ by 0\.\d+$/);
    const { decoded, untiled } = await decodeBoth(decoder, session, [4, 16, 16]);
    expect(Buffer.compare(decoded, untiled)).toBe(0);
  });

  it('disposes of the loaded part when it fails, and throws the failure', async () => {
    const { decoder, parts } = await createDecoder(emojis, 64);
    await decoder.tryTiles([4, 8, 8]);
    parts.disposed = 0;
    await expect(decoder.decode(noise([3, 16, 16]), [3, 16, 16])).rejects.toMatchObject({ code: 'engine_failed' });
    expect(parts.disposed).toBe(1);
  });
});

it('a pipeline decodes large images in tiles', async () => {
  const input = {
    prompt: 'a red apple on a white background',
    negativePrompt: '',
    width: 128,
    height: 96,
    n: 1,
    numInferenceSteps: 1,
    guidanceScale: 1,
    seed: 7,
    scheduler: 'dpmpp_2m',
    previewEvery: 0,
  };
  const images: Uint8Array[] = [];
  for (const vaeTileSize of [64, 1024]) {
    const pipeline = await loadPipeline({ directory: join(root, 'models/emoji-sd'), threads: 1, vaeTileSize });
    expect(pipeline.components.filter(({ remark }) => remark !== undefined)).toEqual([]);
    const [row] = await pipeline.createRows({ id: 'request', input });
    while (!row!.isDone) await pipeline.step([row!]);
    images.push((await pipeline.finish(row!)).data);
    await pipeline.dispose();
  }
  expect(maxPixelDifference(images[0]!, images[1]!)).toBeLessThanOrEqual(1);
});

// The smallest latents of this model, 2 × 2, fit into one tile.
it('a pipeline tries tiled decoding on latents that span several tiles', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-vae-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(join(dirname(sixteenChannels.path), '..'), directory, { recursive: true });
  const load = async () => {
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1, vaeTileSize: 16 });
    await pipeline.dispose();
    return pipeline.components.find(({ part }) => part === 'vae_decoder')!.remark;
  };
  expect(await load()).toBeUndefined();
  // With this dilation, a pixel depends on latents outside its tile.
  dilateConvolution(join(directory, 'vae_decoder/model.onnx'), { weights: 'v10', dilation: 9 });
  expect(await load()).toMatch(/cannot be tiled: tiles differ by \d/);
});

function truncatedCopy(): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-vae-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'model.onnx');
  cpSync(tiny.path, path);
  truncateSync(path, Math.floor(statSync(path).size / 2));
  return path;
}
