/** A tiny language model with GroupQueryAttention, as one graph and cut into parts. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { cutGraph } from './cut-graph.ts';
import { loadSplitSession } from './split-session.ts';
import type { TensorValue } from './tensor-values.ts';

const directory = resolve(import.meta.dirname, '../../../tools/golden/vectors/text');
const fileOf = (name: string) => resolve(directory, name, 'onnx/model.onnx');
const names = [0, 1].flatMap((layer) => [`${layer}.key`, `${layer}.value`]);
const columns = 24;

function feedsOf(rows: number, width: number, { past = 0, first = 1 } = {}): Record<string, TensorValue> {
  const whole = (count: number, of: (at: number) => number) => ({
    data: BigInt64Array.from({ length: rows * count }, (_, at) => BigInt(of(at % count))),
    dims: [rows, count],
  });
  return {
    input_ids: whole(width, (at) => first + ((at * 7) % 60)),
    attention_mask: whole(past + width, () => 1),
    position_ids: whole(width, (at) => past + at),
    num_logits_to_keep: { data: BigInt64Array.of(BigInt(width)), dims: [] },
  };
}

function cachesOf(rows: number): Map<string, TensorValue> {
  const dims = [rows, 2, columns, 16];
  return new Map(names.map((name) => [name, { data: new Float32Array(rows * 2 * columns * 16), dims }]));
}

function sampleOf(rows: number, width: number, past: number): Record<string, TensorValue> {
  const caches = [...cachesOf(rows)].map(([name, value]) => [`past_key_values.${name}`, value] as const);
  return { ...feedsOf(rows, width, { past }), ...Object.fromEntries(caches) };
}

async function open(name: string, minPartBytes: number) {
  const session = await loadSplitSession({
    file: fileOf(name),
    threads: 1,
    cutAfter: 'GroupQueryAttention',
    minPartBytes,
    sizedBy: 'input_ids',
    samples: [sampleOf(1, 4, 3), sampleOf(2, 1, 5)],
  });
  onTestFinished(() => session.dispose());
  /** Reads 5 tokens, with caches that move to new arrays before each part. */
  const read = async (rows: number, { hasLogits = true, first = 1 } = {}) => {
    let caches = cachesOf(rows);
    const logits = { data: new Float32Array(rows * 5 * 64), dims: [rows, 5, 64] };
    let parts = 0;
    const move = () => {
      caches = new Map([...caches].map(([name, { data, dims }]) => [name, { data: data.slice(), dims }]));
    };
    const prefixed = (prefix: string) => [...caches].map(([name, value]) => [`${prefix}.${name}`, value] as const);
    const call = session.run(
      () => ({ ...feedsOf(rows, 5, { first }), ...Object.fromEntries(prefixed('past_key_values')) }),
      () => new Map([...prefixed('present'), ...(hasLogits ? ([['logits', logits]] as const) : [])]),
    );
    for (let isDone = false; !isDone; parts++) {
      move();
      isDone = (await call.next()).done === true;
    }
    return {
      parts,
      logits: [...logits.data],
      caches: [...caches.values()].map(({ data }) => [...(data as Float32Array)]),
    };
  };
  return { session, read };
}

it.each(['group-query', 'group-query-uncopied'])(
  'computes the same in parts as in one graph, from %s',
  async (name) => {
    const whole = await open(name, Infinity);
    const cut = await open(name, 1);
    expect([whole.session.whole, cut.session.whole]).toEqual([expect.anything(), undefined]);
    for (const rows of [1, 3]) {
      const [expected, found] = [await whole.read(rows), await cut.read(rows)];
      expect([expected.parts, found.parts]).toEqual([1, 3]);
      expect(found.caches).toEqual(expected.caches);
      expect(found.logits).toEqual(expected.logits);
    }
    expect(cut.session.inputs.map((input) => input.name).toSorted()).toEqual(
      whole.session.inputs.map((input) => input.name).toSorted(),
    );
  },
);

it('keeps the intermediate values of interleaved calls apart', async () => {
  const { read } = await open('group-query', 1);
  const requests = [1, 2, 3, 2].map((rows, at) => ({ rows, first: 1 + at }));
  const alone = [];
  for (const { rows, first } of requests) alone.push(await read(rows, { first }));
  expect(await Promise.all(requests.map(({ rows, first }) => read(rows, { first })))).toEqual(alone);
});

it('skips the part that computes only logits if they are not requested', async () => {
  const { read } = await open('group-query-uncopied', 1);
  const [all, caches] = [await read(1), await read(1, { hasLogits: false })];
  expect(caches.parts).toBe(all.parts - 1);
  expect(caches.caches).toEqual(all.caches);
  expect(caches.logits.every((value) => value === 0)).toBe(true);
});

it('stays in one part if there is no node to cut after; rejects bytes that are not a graph', () => {
  const model = readFileSync(fileOf('group-query'));
  expect(cutGraph(model, 'GroupQueryAttention', 1)).toHaveLength(3);
  expect(cutGraph(model, 'GroupQueryAttention', Infinity)).toHaveLength(1);
  expect(cutGraph(model, 'Unknown', 1)).toHaveLength(1);
  expect(cutGraph(new Uint8Array(0), 'GroupQueryAttention', 1)).toBeUndefined();
  expect(() => cutGraph(model.subarray(0, 1000), 'GroupQueryAttention', 1)).toThrow('invalid protobuf field at byte');
});
