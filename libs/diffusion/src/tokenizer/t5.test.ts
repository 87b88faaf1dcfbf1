import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/t5-tokenizer.json' with { type: 'json' };
import { PromptTokenizer } from './prompt-tokenizer.ts';
import { readTokenizerFiles, type TokenizerFiles } from './tokenizer-files.ts';

const model = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-3/model');
const { cases, maxTokens } = recorded;

const published = { ...(await readTokenizerFiles(model, 'tokenizer_3', 't5')), maxTokens };
const [charsmap] = (published.definition['normalizer'] as { normalizers: unknown[] }).normalizers;
const metaspace = { type: 'Metaspace', replacement: '▁', str_rep: '▁', add_prefix_space: true };
/** The format of transformers until 2023: a second splitter instead of three normalizers. */
const older: TokenizerFiles = {
  ...published,
  definition: {
    ...published.definition,
    normalizer: charsmap,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'WhitespaceSplit' }, metaspace] },
  },
};

describe.each([
  ['as it is saved now', published],
  ['as it was saved before', older],
])('the T5 tokenizer %s', (_, files) => {
  const tokenizer = new PromptTokenizer(files);

  it.each(cases)('returns the ids of transformers for $text', ({ text, ids, cutTokens }) => {
    const padding = Array.from({ length: maxTokens - ids.length }, () => 0);
    expect(tokenizer.encode(text)).toEqual({ ids: [...ids, ...padding], cutTokens });
  });

  it('cuts long texts before the end token', () => {
    const { ids, cutTokens } = tokenizer.encode('a cat '.repeat(2000));
    expect([ids.length, ids.at(-1)]).toEqual([maxTokens, files.endIds[0]]);
    expect(cutTokens).toBeGreaterThan(4000);
  });

  it('has trial ids with the highest id of the vocabulary', () => {
    expect(tokenizer.trialIds).toHaveLength(maxTokens);
    expect(tokenizer.trialIds.slice(0, 3)).toEqual([files.highestId, files.endIds[0], files.padId]);
  });
});

describe('the files of a T5 tokenizer', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-t5-'));
    await cp(join(model, 'tokenizer_3'), join(directory, 'tokenizer_3'), { recursive: true });
  });
  afterEach(() => rm(directory, { recursive: true }));

  const failure = (): Promise<{ code: string; message: string }> =>
    readTokenizerFiles(directory, 'tokenizer_3', 't5')
      .then((files) => new PromptTokenizer(files))
      .then(
        () => expect.fail('it was made'),
        (error: { code: string; message: string }) => error,
      );

  it('are read with the maximum length of diffusers, whatever model_max_length says', async () => {
    expect(await readTokenizerFiles(directory, 'tokenizer_3', 't5')).toMatchObject({
      maxTokens: 256,
      endIds: [1],
      padId: 0,
    });
  });

  it('are reported if missing, with advice about spiece.model', async () => {
    await rm(join(directory, 'tokenizer_3/tokenizer.json'));
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: 'tokenizer_3/tokenizer.json: is missing',
    });
    await writeFile(join(directory, 'tokenizer_3/spiece.model'), 'binary');
    expect((await failure()).message).toContain('tokenizer.json: is missing; spiece.model beside it is not read');
    await rm(join(directory, 'tokenizer_3/tokenizer_config.json'));
    expect((await failure()).message).toBe('tokenizer_3/tokenizer_config.json: is missing');
  });

  it.each([
    [{ model: { type: 'BPE', vocab: { a: 0 }, merges: [] } }, 'model.type: '],
    [{ model: { type: 'Unigram', unk_id: 2, vocab: [['a', 'b']] } }, 'model.vocab.0.1: '],
    [{ model: { type: 'Unigram', vocab: [['</s>', 0]] } }, 'model.unk_id: '],
    [{ normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAAA' } }, 'cannot be used: precompiled_'],
    [{ normalizer: { type: 'Precompiled', precompiled_charsmap: '////fw==' } }, 'cannot be used: precompi'],
    [{ pre_tokenizer: { type: 'Telepathy' } }, 'cannot be used: '],
  ])('are refused with file and field if tokenizer.json has %j', async (change, problem) => {
    const json = JSON.stringify({ ...published.definition, ...change });
    await writeFile(join(directory, 'tokenizer_3/tokenizer.json'), json);
    expect(await failure()).toMatchObject({
      code: 'model_unsupported',
      message: expect.stringContaining(`tokenizer_3/tokenizer.json: ${problem}`) as string,
    });
  });

  it('are refused if a special token is not in the vocabulary', async () => {
    await writeFile(join(directory, 'tokenizer_3/tokenizer_config.json'), JSON.stringify({ eos_token: '<end>' }));
    const message = 'tokenizer_3/tokenizer_config.json: eos_token: "<end>" is not in the vocabulary';
    expect(await failure()).toMatchObject({ code: 'model_unsupported', message });
  });
});
