/** Graphs of a tiny random model, compared with the output of transformers: tools/golden/record-tiny-text.py. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TextInput } from '@darkroom/kinds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTextPipeline } from '../pipelines/load-text-pipeline.ts';
import type { TextPipeline } from '../pipelines/text-pipeline.ts';
import {
  differenceOf,
  writeInBatches,
  randomInput,
  textInput,
  type TextResult,
  TextTable,
} from '../testing/text-table.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text');
const { cases } = JSON.parse(readFileSync(join(vectors, 'tiny-greedy.json'), 'utf8')) as {
  cases: { prompt: number[]; tokens: number[] }[];
};
const load = (name: string, minPartBytes = Infinity) =>
  loadTextPipeline({ directory: join(vectors, name), threads: 1, stepTokens: 16, minPartBytes });

const inputOf = (number: number): TextInput => {
  const input = randomInput(number, cases[4]!.prompt);
  return { ...input, logprobs: 2, prompt: input.prompt.map((id) => 1 + (id % 63)) };
};

describe.each([
  ['with GroupQueryAttention and shared buffers', 'group-query', Infinity],
  ['with shared buffers and no copies', 'group-query-uncopied', Infinity],
  ['with GroupQueryAttention and caches in float16', 'group-query-half', Infinity],
  ['with caches in float16 and no copies', 'group-query-half-uncopied', Infinity],
  ['cut into parts', 'group-query-uncopied', 1],
  ['cut into parts, with copies', 'group-query', 1],
  ['in the plain layout', 'plain', Infinity],
])('text of a graph %s', (_, name, minPartBytes) => {
  let pipeline: TextPipeline;
  beforeAll(async () => {
    pipeline = await load(name, minPartBytes);
  });
  afterAll(() => pipeline.dispose());

  it('equals that of transformers, token by token, alone', async () => {
    for (const { prompt, tokens } of cases)
      expect((await new TextTable(pipeline).write(textInput({ prompt }))).tokens).toEqual(tokens);
  });

  it('equals it in a batch', async () => {
    const table = new TextTable(pipeline);
    for (const [at, { prompt }] of cases.entries()) {
      await table.join(`${at}`, textInput({ prompt }));
      for (let tick = 0; tick < 3; tick++) await table.tick();
    }
    await table.run();
    expect(cases.map((__, at) => table.results.get(`${at}`)!.tokens)).toEqual(cases.map(({ tokens }) => tokens));
  });
});

it.each([
  ['group-query', Infinity],
  ['group-query-uncopied', Infinity],
  ['group-query-uncopied', 1],
])('gives the same bytes in any batch as alone, from %s cut at %s', async (name, minPartBytes) => {
  const pipeline = await load(name, minPartBytes);
  expect(pipeline.card.deterministic).toEqual({ is: true });
  const alone: TextResult[] = [];
  for (let at = 0; at < 40; at++) alone.push(await new TextTable(pipeline).write(inputOf(at)));
  for (let round = 0; round < 3; round++) {
    const together = await writeInBatches(pipeline, { seed: round, inputOf, alone });
    expect(together.map((one, at) => differenceOf(one, alone[at]!))).toEqual(alone.map(() => ''));
  }
  await pipeline.dispose();
});

it.each([
  ['with a Softmax, which sums in an order that follows the longest row', 'plain', ''],
  ['with caches in float16', 'group-query-half', 'with caches in float16 '],
])('is reported as not deterministic %s', async (_, name, where) => {
  const pipeline = await load(name);
  const reason = `${where}the last bits of a row change with the rows that share its steps`;
  expect(pipeline.card.deterministic).toEqual({ is: false, reason });
  await pipeline.dispose();
});
