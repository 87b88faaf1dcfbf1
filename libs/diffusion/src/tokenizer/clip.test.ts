import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import recorded from './__fixtures__/clip-tokenizer.json' with { type: 'json' };
import image from '../../../../tools/golden/vectors/emoji-sd-int8-seed7.json' with { type: 'json' };
import { PromptTokenizer } from './prompt-tokenizer.ts';
import { readTokenizerFiles } from './tokenizer-files.ts';

describe('the CLIP tokenizer', () => {
  let tokenizer: PromptTokenizer;
  beforeAll(async () => {
    tokenizer = new PromptTokenizer(
      await readTokenizerFiles(resolve(import.meta.dirname, '../../../../models/emoji-sd'), 'tokenizer', 'clip'),
    );
  });

  it.each(recorded.cases)('returns the ids of transformers for $prompt', ({ prompt, ids }) => {
    const padding = Array.from({ length: 77 - ids.length }, () => 1447);
    expect(tokenizer.encode(prompt).ids).toEqual([...ids, ...padding]);
  });

  it('returns the number of tokens that were cut off', () => {
    const perWord = tokenizer.encode('apple ').ids.indexOf(1447) - 1;
    const fitting = Math.floor(75 / perWord);
    expect(tokenizer.encode('apple '.repeat(fitting)).cutTokens).toBe(0);
    const { ids, cutTokens } = tokenizer.encode('apple '.repeat(fitting + 20));
    expect(cutTokens).toBe((fitting + 20) * perWord - 75);
    expect(ids).toHaveLength(77);
    expect(ids.at(-1)).toBe(1447);
  });

  it("returns the ids of the recorded image's prompt", () => {
    expect(tokenizer.encode(image.prompt).ids).toEqual(image.inputIds);
    expect(tokenizer.encode(image.negativePrompt).ids).toEqual(image.negativeInputIds);
  });
});
