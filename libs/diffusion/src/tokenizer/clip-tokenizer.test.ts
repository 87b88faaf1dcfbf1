import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import recorded from '../__fixtures__/clip-tokenizer.json' with { type: 'json' };
import picture from '../../../../tools/golden/vectors/emoji-sd-int8-seed7.json' with { type: 'json' };
import { createClipTokenizer } from './clip-tokenizer.ts';
import type { ClipTokenizer } from './clip-tokenizer.ts';
import { readTokenizerFiles } from './tokenizer-files.ts';

describe('the CLIP tokenizer', () => {
  let tokenizer: ClipTokenizer;
  beforeAll(async () => {
    tokenizer = createClipTokenizer(
      await readTokenizerFiles(resolve(import.meta.dirname, '../../../../models/emoji-sd'), 'tokenizer'),
    );
  });

  it.each(recorded.cases)('gives the ids that transformers gives for $prompt', ({ prompt, ids }) => {
    const padding = Array.from({ length: 77 - ids.length }, () => 1447);
    expect(tokenizer.encode(prompt)).toEqual([...ids, ...padding]);
  });

  it('gives the ids of the recorded picture', () => {
    expect(tokenizer.encode(picture.prompt)).toEqual(picture.inputIds);
    expect(tokenizer.encode(picture.negativePrompt)).toEqual(picture.negativeInputIds);
  });
});
