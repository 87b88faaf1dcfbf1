import { DarkroomError } from '@darkroom/core';
import { expect, it, onTestFinished } from 'vitest';
import { createEncodingThread } from './encoding-thread.ts';
import { encodeTextCodecFiles } from './text-codec.ts';

const tokenizer = {
  added_tokens: [],
  model: { type: 'WordLevel', vocab: { '<unk>': 0, owl: 1 }, unk_token: '<unk>' },
  decoder: null,
  normalizer: null,
  post_processor: null,
  pre_tokenizer: { type: 'Whitespace' },
};
const options = { addSpecialTokens: false, most: 10 };

it('reads texts in their order, and refuses what would wait behind too many letters', async () => {
  const thread = createEncodingThread(encodeTextCodecFiles({ tokenizer, config: {} }));
  onTestFinished(() => thread.close());
  const long = ' '.repeat(3_000_000);
  const reading = [thread.encode(`owl${long}`, options), thread.encode(`owl owl${long}`, options)];
  const refused = await thread.encode(long, options).catch((error: unknown) => error);
  expect(refused).toSatisfy((error) => DarkroomError.isInstance(error));
  expect(refused).toMatchObject({ code: 'overloaded' });
  expect(await Promise.all(reading)).toEqual([[1], [1, 1]]);
  // One text is read however long it is.
  expect(await thread.encode(`${long}${long}${long}owl`, options)).toEqual([1]);
});
