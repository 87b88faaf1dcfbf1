import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadPipeline } from '../../pipelines/load-pipeline.ts';
import { projectLatents } from '../../image/latents-to-rgb.ts';
import { readModelDirectory } from '../model-directory.ts';
import { findPreviewProjection } from './preview-projection.ts';

const pipelines = resolve(import.meta.dirname, '../../../../../tools/golden/vectors/pipelines');

/** Converts −1…1 to an 8-bit value. */
function gray(value: number): number {
  return Math.round(((value + 1) / 2) * 255);
}

/** Copies a tiny model and changes its VAE's configuration. */
function copyOf(name: string, change: (vae: Record<string, unknown>) => void = () => {}): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-previews-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(join(pipelines, name, 'model'), directory, { recursive: true });
  const file = join(directory, 'vae_decoder/config.json');
  const vae = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  change(vae);
  writeFileSync(file, JSON.stringify(vae));
  return directory;
}

describe('findPreviewProjection', () => {
  const stableDiffusion = { channels: 4, scalingFactor: 0.18215, shiftFactor: 0 };
  const xl = { channels: 4, scalingFactor: 0.13025, shiftFactor: 0 };
  const three = { channels: 16, scalingFactor: 1.5305, shiftFactor: 0.0609 };
  const flux = { channels: 16, scalingFactor: 0.3611, shiftFactor: 0.1159 };

  it.each([
    ['Stable Diffusion 1 and 2', stableDiffusion],
    ['Stable Diffusion XL', xl],
    ['Stable Diffusion 3', three],
    ['FLUX.1', flux],
  ])('has one row for each latent channel of the VAE of %s', (_, latents) => {
    expect(findPreviewProjection(latents)!.matrix).toHaveLength(latents.channels);
  });

  it('maps scaled latents to RGB in 0…1 by the published numbers, which map to −1…1', () => {
    const colorOf = (latents: typeof three, values: readonly number[]): number[] => [
      ...projectLatents(Float32Array.from(values), findPreviewProjection(latents)!),
    ];
    // Zero latents are gray, as 0 in −1…1; a bias shifts the color.
    expect(colorOf(stableDiffusion, [0, 0, 0, 0])).toEqual([128, 128, 128]);
    expect(colorOf(xl, [0, 0, 0, 0])).toEqual([0.1084, -0.0175, -0.0011].map(gray));
    // The last channel of Stable Diffusion 1 subtracts blue most.
    const [red, green, blue] = colorOf(stableDiffusion, [0, 0, 0, 1]);
    expect([red, green, blue]).toEqual([-0.212, -0.2616, -0.7177].map(gray));
    expect(Math.max(...colorOf(three, [0, 0, 3, ...Array<number>(13).fill(0)]))).toBeGreaterThan(200);
  });

  it.each([
    ['another scale', { ...stableDiffusion, scalingFactor: 0.5517687 }],
    ['another shift', { ...three, shiftFactor: 0 }],
    ['other channels', { ...stableDiffusion, channels: 16 }],
    ['CogView4, of which no numbers are published', { channels: 16, scalingFactor: 1, shiftFactor: 0 }],
  ])('is undefined for a VAE of %s', (_, latents) => {
    expect(findPreviewProjection(latents)).toBeUndefined();
  });
});

describe('a model without `preview` in darkroom.json', () => {
  const steps = { n: 1, numInferenceSteps: 2, seed: 7, guidanceScale: 1, guidanceRescale: 0, previewEvery: 1 };
  const previewsOf = async (directory: string, scheduler: string) => {
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    const input = { prompt: 'a cat', negativePrompt: '', width: 32, height: 32, scheduler, ...steps };
    const row = (await pipeline.createRows({ id: 'request', input }))[0]!;
    const events = [];
    while (!row.isDone) events.push(...(await pipeline.step([row])).events.get(row)!);
    return events.flatMap((event) => (event.type === 'progress' && event.preview !== undefined ? [event.preview] : []));
  };

  it.each([
    ['the scale of Stable Diffusion 1', 'stable-diffusion-2', { scaling_factor: 0.18215 }, 'ddim'],
    ['no scale, which is that of Stable Diffusion 1', 'stable-diffusion-2', { scaling_factor: undefined }, 'ddim'],
    ['the scale of Stable Diffusion XL', 'stable-diffusion-xl', {}, 'euler'],
    ['the scale and shift of Stable Diffusion 3', 'stable-diffusion-3', {}, 'flow_match_euler'],
  ])('has previews if its VAE has %s', async (_, name, changes, scheduler) => {
    const directory = copyOf(name, (vae) => Object.assign(vae, changes));
    const previews = await previewsOf(directory, scheduler);
    expect(previews).toHaveLength(1);
    const { width, height } = previews[0]!.facts as { width: number; height: number };
    expect(previews[0]!.data).toHaveLength(width * height * 3);
    expect(new Set(previews[0]!.data).size).toBeGreaterThan(4);
  });

  it('has no previews if its VAE is unknown', async () => {
    const directory = copyOf('stable-diffusion-2', (vae) => (vae['scaling_factor'] = 0.55));
    expect(await previewsOf(directory, 'ddim')).toEqual([]);
  });

  it('uses the projection of darkroom.json if there is one, whatever its VAE', async () => {
    const directory = copyOf('stable-diffusion-xl');
    const preview = { matrix: Array.from({ length: 4 }, () => [0, 0, 0]), bias: [1, 0, 0] };
    writeFileSync(join(directory, 'darkroom.json'), JSON.stringify({ preview }));
    expect((await readModelDirectory(directory, { id: 'tiny' })).preview).toEqual(preview);
    const [first] = await previewsOf(directory, 'euler');
    expect([...first!.data.subarray(0, 6)]).toEqual([255, 0, 0, 255, 0, 0]);
  });
});
