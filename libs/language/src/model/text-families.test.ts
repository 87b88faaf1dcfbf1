/** Tiny models of other families than llama, compared with transformers: tools/golden/record-text-families.py. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { loadTextPipeline } from '../pipelines/load-text-pipeline.ts';
import { textInput, TextTable } from '../testing/text-table.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text/families');
const recorded = JSON.parse(readFileSync(join(vectors, 'greedy.json'), 'utf8')) as Record<
  string,
  { prompt: number[]; tokens: number[] }[]
>;

it.each(['qwen2', 'qwen3', 'gemma3_text', 'phi', 'phi3'])('%s writes the same text as transformers', async (family) => {
  const cases = recorded[family]!;
  const pipeline = await loadTextPipeline({ directory: join(vectors, family), threads: 1, stepTokens: 16 });
  expect(pipeline.card.deterministic).toEqual({ is: true });
  const together = new TextTable(pipeline);
  for (const [at, { prompt }] of cases.entries()) {
    await together.join(`${at}`, textInput({ prompt }));
    await together.tick();
  }
  await together.run();
  expect(cases.map((_, at) => together.results.get(`${at}`)!.tokens)).toEqual(cases.map(({ tokens }) => tokens));
  await pipeline.dispose();
});
