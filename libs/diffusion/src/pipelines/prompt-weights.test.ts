/** Prompts in the syntax of Stable Diffusion web UI: weights and several chunks, against embeddings by compel. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { loadPipeline } from './load-pipeline.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const recorded = JSON.parse(readFileSync(resolve(vectors, 'prompt-weights.json'), 'utf8')) as {
  model: string;
  cases: { prompt: string; tokens: number; rows: number[]; values: string }[];
};

async function open(name: string): Promise<ImagePipeline> {
  const pipeline = await loadPipeline({
    directory: resolve(vectors, 'pipelines', name, 'model'),
    id: 'tiny',
    threads: 1,
  });
  onTestFinished(() => pipeline.dispose());
  return pipeline;
}

async function rowOf(pipeline: ImagePipeline, prompt: string, more: object = {}): Promise<ImageRow> {
  const { defaultScheduler: scheduler } = pipeline.card;
  const size = { width: 32, height: 32, n: 1, numInferenceSteps: 2, guidanceScale: 3, previewEvery: 0 };
  const input = { prompt, negativePrompt: '', ...size, seed: 1, scheduler, promptSyntax: 'webui', ...more };
  return (await pipeline.createRows({ id: 'request', input }))[0]!;
}

async function draw(pipeline: ImagePipeline, prompt: string, more: object = {}): Promise<Uint8Array> {
  const row = await rowOf(pipeline, prompt, more);
  while (!row.isDone) expect((await pipeline.step([row])).failures.size).toBe(0);
  return (await pipeline.finish(row)).data;
}

it.each(recorded.cases)('embeds $prompt as compel does', async ({ prompt, tokens, rows, values }) => {
  const row = await rowOf(await open(recorded.model), prompt);
  const ours = row.prompt.conditioning['encoder_hidden_states']!;
  const width = ours.length / tokens;
  const theirs = new Float32Array(new Uint8Array(Buffer.from(values, 'base64')).buffer);
  expect(theirs).toHaveLength(rows.length * width);
  const differences = rows.flatMap((token, at) =>
    Array.from({ length: width }, (_, x) => Math.abs(ours[token * width + x]! - theirs[at * width + x]!)),
  );
  expect(Math.max(...differences)).toBeLessThan(1e-5);
  expect(row.prompt.cutTokens).toBe(0);
});

const families = ['stable-diffusion-2', 'latent-consistency', 'stable-diffusion-xl'];

describe.each(families)('the pipeline %s', (name) => {
  it('draws the same bytes of a prompt without weights in either syntax', async () => {
    const pipeline = await open(name);
    const plain = { promptSyntax: undefined };
    const prompt = 'a red apple on a white background';
    expect(await draw(pipeline, prompt)).toEqual(await draw(pipeline, prompt, plain));
    expect(await draw(pipeline, String.raw`a \(red\) apple`)).toEqual(await draw(pipeline, 'a (red) apple', plain));
    expect(await draw(pipeline, 'a (red) apple')).not.toEqual(await draw(pipeline, 'a (red) apple', plain));
  });

  it('reads four chunks of a long prompt, and reports the tokens after them', async () => {
    const pipeline = await open(name);
    const { conditioning, cutTokens } = (await rowOf(pipeline, 'apple '.repeat(310))).prompt;
    const plain = (await rowOf(pipeline, 'apple '.repeat(310), { promptSyntax: undefined })).prompt;
    expect([cutTokens, plain.cutTokens]).toEqual([10, 235]);
    const [long, short] = [conditioning, plain.conditioning].map((each) => each['encoder_hidden_states']!);
    expect(long).toHaveLength(short!.length * 4);
    expect(long!.subarray(0, short!.length)).toEqual(short);
    // The embedding of the complete prompt, and other inputs, are those of the first chunk.
    expect({ ...conditioning, encoder_hidden_states: short }).toEqual(plain.conditioning);
    await draw(pipeline, 'apple '.repeat(310));
  });
});

it.each(['stable-diffusion-3', 'cogview4'])('refuses weights for %s, whose encoders are not all CLIP', async (name) => {
  const pipeline = await open(name);
  expect(pipeline.card.promptSyntaxes).toBeUndefined();
  await expect(rowOf(pipeline, 'a (red) apple')).rejects.toThrow('promptSyntax: this model does not read webui');
});
