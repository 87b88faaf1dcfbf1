import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/glm-tokenizer.json' with { type: 'json' };
import { PromptTokenizer } from './prompt-tokenizer.ts';
import { readTokenizerFiles } from './tokenizer-files.ts';

const model = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/cogview4/model');

describe('the GLM tokenizer', () => {
  it.each(recorded.cases)('returns the ids of transformers for $text', async ({ text, ids, cutTokens }) => {
    const tokenizer = new PromptTokenizer(await readTokenizerFiles(model, 'tokenizer', 'glm'));
    expect(tokenizer.encode(text)).toEqual({ ids, cutTokens });
  });

  it('pads to complete blocks of 16, and cuts at 1024', async () => {
    const tokenizer = new PromptTokenizer(await readTokenizerFiles(model, 'tokenizer', 'glm'));
    const lengths = recorded.cases.map(({ text }) => tokenizer.encode(text).ids.length);
    expect(lengths.every((length) => length % 16 === 0)).toBe(true);
    expect(Math.max(...lengths)).toBe(1024);
    expect(tokenizer.maxTokens).toBe(1024);
    const exactly = 'a '.repeat(2000);
    expect(tokenizer.encode(exactly).cutTokens).toBeGreaterThan(0);
  });
});

describe('the files of a GLM tokenizer', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-glm-'));
    await cp(join(model, 'tokenizer'), join(directory, 'tokenizer'), { recursive: true });
  });
  afterEach(() => rm(directory, { recursive: true }));

  async function edit(file: string, change: Record<string, unknown>) {
    const path = join(directory, 'tokenizer', file);
    const json = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    await writeFile(path, JSON.stringify({ ...json, ...change }));
  }
  const create = async () => new PromptTokenizer(await readTokenizerFiles(directory, 'tokenizer', 'glm'));

  it.each(['tokenizer.json', 'tokenizer_config.json'])('are refused without %s', async (file) => {
    await rm(join(directory, 'tokenizer', file));
    await expect(create()).rejects.toMatchObject({ message: `tokenizer/${file}: is missing` });
  });

  it.each([
    ['tokenizer_config.json', { pad_token: '<pad>' }, '/tokenizer_config.json: pad_token: "<pad>" is not in the'],
    ['tokenizer.json', { model: { type: 'Unigram', vocab: [] } }, '/tokenizer.json: model.type: '],
    ['tokenizer.json', { pre_tokenizer: { type: 'Other' } }, '/tokenizer.json: cannot be used: '],
    [
      'tokenizer.json',
      { post_processor: null },
      '/tokenizer.json: post_processor: must add special tokens before each text',
    ],
  ])('are refused if %s has %j', async (file, change, message) => {
    await edit(file, change);
    await expect(create()).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringContaining(message) as string,
    });
  });
});
