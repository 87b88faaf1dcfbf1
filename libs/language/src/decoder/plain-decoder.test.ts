/** Tests the inputs of graph calls, with a fake session that records them. */
import { mapNonEmpty, type NonEmpty } from '@darkroom/core';
import type { FloatTensor, OnnxSession, TensorValue } from '@darkroom/runtime';
import { describe, expect, it } from 'vitest';
import { tokenIds } from './decoder-tokens.ts';
import { PlainDecoder } from './plain-decoder.ts';

const shape = { tensors: 2, heads: 2, width: 3 };
type Feeds = Readonly<Record<string, TensorValue>>;

/** Creates a decoder on a fake graph: all keys, values and logits of a token equal the token's id. */
function createRecordingDecoder({ hasLogitsInput }: { hasLogitsInput: boolean }) {
  const calls: Feeds[] = [];
  const names = ['input_ids', 'attention_mask', 'position_ids', ...(hasLogitsInput ? ['num_logits_to_keep'] : [])];
  const runForAll = (feeds: Feeds, outputs: NonEmpty<string>, into: ReadonlyMap<string, FloatTensor>) => {
    calls.push(feeds);
    const [rows, width] = feeds['input_ids']!.dims as [number, number];
    const past = feeds['past_key_values.0.key']!.dims[2]!;
    for (const name of ['key', 'value']) {
      const { data } = into.get(`present.0.${name}`)!;
      const before = feeds[`past_key_values.0.${name}`]!.data as Float32Array;
      for (let row = 0; row < rows * shape.heads; row++)
        for (let column = 0; column < past + width; column++)
          for (let at = 0; at < shape.width; at++)
            data[(row * (past + width) + column) * shape.width + at] =
              column < past
                ? before[(row * past + column) * shape.width + at]!
                : Number(feeds['input_ids']!.data[Math.floor(row / shape.heads) * width + column - past]);
    }
    const { data, dims } = into.get('logits')!;
    const count = dims[1]!;
    for (let row = 0; row < rows; row++)
      for (let at = 0; at < count; at++)
        data[row * count + at] = Number(feeds['input_ids']!.data[row * width + width - count + at]);
    return Promise.resolve(mapNonEmpty(outputs, (name) => into.get(name)!));
  };
  const inputs = names.map((name) => ({ name, type: 'int64', shape: [] }));
  const session = { inputs, runForAll } as Partial<OnnxSession> as OnnxSession;
  return { calls, decoder: new PlainDecoder({ session, tokens: tokenIds, vocabularySize: 1, shape }) };
}
const numbers = (value: TensorValue | undefined) => Array.from(value!.data, Number);

describe.each([false, true])('the plain layout, with the input num_logits_to_keep: %s', (hasLogitsInput) => {
  it('puts the past of each row into the first columns, and new tokens behind the longest past', async () => {
    const { calls, decoder } = createRecordingDecoder({ hasLogitsInput });
    const [long, short] = [decoder.createCache(), decoder.createCache()];
    const first = { cache: long, ids: [5, 6, 7], keeps: true, logitsFrom: 2 };
    const second = { cache: short, ids: [8, 9], keeps: true, logitsFrom: 0 };
    const logits = await decoder.run([first, second]);
    expect(logits.map((each) => [...each])).toEqual([[7], [8, 9]]);
    expect([long.length, short.length]).toEqual([3, 2]);
    expect(numbers(calls[0]!['attention_mask'])).toEqual([1, 1, 1, 1, 1, 0]);
    expect(numbers(calls[0]!['position_ids'])).toEqual([0, 1, 2, 0, 1, 0]);

    const next = [long, short].map((cache, at) => ({ cache, ids: [10 + at], keeps: true, logitsFrom: 0 }));
    expect((await decoder.run(next)).map((each) => [...each])).toEqual([[10], [11]]);
    expect(numbers(calls[1]!['attention_mask'])).toEqual([1, 1, 1, 1, 1, 1, 0, 1]);
    expect(numbers(calls[1]!['position_ids'])).toEqual([3, 2]);
    await decoder.run([{ cache: decoder.copyCache(short, 3), ids: [1, 2], keeps: false, logitsFrom: 2 }]);
    const keys = numbers(calls[2]!['past_key_values.0.key']);
    expect(keys).toEqual([8, 8, 8, 9, 9, 9, 11, 11, 11, 8, 8, 8, 9, 9, 9, 11, 11, 11]);
  });

  it('pads a call with a single token to two rows', async () => {
    const { calls, decoder } = createRecordingDecoder({ hasLogitsInput });
    const cache = decoder.createCache();
    const [logits] = await decoder.run([{ cache, ids: [5], keeps: true, logitsFrom: 0 }]);
    expect([...logits!]).toEqual([5]);
    expect(calls[0]!['input_ids']!.dims).toEqual([2, 1]);
    expect(numbers(calls[0]!['attention_mask'])).toEqual([1, 1]);
    await decoder.run([{ cache, ids: [6, 7], keeps: true, logitsFrom: 1 }]);
    expect(calls[1]!['input_ids']!.dims).toEqual([1, 2]);
  });

  it('computes only the requested logits', async () => {
    const { calls, decoder } = createRecordingDecoder({ hasLogitsInput });
    const read = { ids: [1, 2, 3, 4], keeps: true };
    const none = await decoder.run([{ ...read, cache: decoder.createCache(), logitsFrom: 4 }]);
    expect(none[0]).toHaveLength(0);
    const two = await decoder.run([{ ...read, cache: decoder.createCache(), logitsFrom: 2 }]);
    expect([...two[0]!]).toEqual([3, 4]);
    expect(calls.map((feeds) => feeds['num_logits_to_keep'] && numbers(feeds['num_logits_to_keep']))).toEqual(
      hasLogitsInput ? [[1], [2]] : [undefined, undefined],
    );
  });
});
