import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import recorded from './__fixtures__/clip-tokenizer.json' with { type: 'json' };
import picture from '../../../../tools/golden/vectors/emoji-sd-int8-seed7.json' with { type: 'json' };
import { PromptTokenizer } from './prompt-tokenizer.ts';
import { readTokenizerFiles } from './tokenizer-files.ts';

describe('the CLIP tokenizer', () => {
  let tokenizer: PromptTokenizer;
  beforeAll(async () => {
    tokenizer = new PromptTokenizer(
      await readTokenizerFiles(resolve(import.meta.dirname, '../../../../models/emoji-sd'), 'tokenizer', 'clip'),
    );
  });

  it.each(recorded.cases)('gives the ids that transformers gives for $prompt', ({ prompt, ids }) => {
    const padding = Array.from({ length: 77 - ids.length }, () => 1447);
    expect(tokenizer.encode(prompt).ids).toEqual([...ids, ...padding]);
  });

  it('says how many tokens of a text it cut', () => {
    const perWord = tokenizer.encode('apple ').ids.indexOf(1447) - 1;
    const fitting = Math.floor(75 / perWord);
    expect(tokenizer.encode('apple '.repeat(fitting)).cutTokens).toBe(0);
    const { ids, cutTokens } = tokenizer.encode('apple '.repeat(fitting + 20));
    expect(cutTokens).toBe((fitting + 20) * perWord - 75);
    expect(ids).toHaveLength(77);
    expect(ids.at(-1)).toBe(1447);
  });

  it('gives the ids of the recorded picture', () => {
    expect(tokenizer.encode(picture.prompt).ids).toEqual(picture.inputIds);
    expect(tokenizer.encode(picture.negativePrompt).ids).toEqual(picture.negativeInputIds);
  });
});
