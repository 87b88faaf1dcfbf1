/**
 * Text pipelines on one thread, without engine, queue and network: tokens per second by rows in flight, inter-token
 * latency while a long prompt is read, model calls per token of block diffusion, and the costs of grammars and of
 * sampling.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TextInput } from '@darkroom/kinds';
import { loadTextPipeline, readTextModelDirectory, type TextPipeline } from '@darkroom/language';
import { it } from 'vitest';
import { chooseToken } from '../libs/language/src/sampling/choose-token.ts';
import { RandomNumbers } from '../libs/language/src/sampling/random-numbers.ts';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { publishAtEnd } from './publish.ts';
import { median, medianWithRange } from './report.ts';
import { type Cell, percentileTable, type Table, tableOf } from './table.ts';

const root = resolve(import.meta.dirname, '..');
const vectors = join(root, 'tools/golden/vectors/emoji-writer-greedy.json');
const { cases } = JSON.parse(readFileSync(vectors, 'utf8')) as { cases: { prompt: number[] }[] };
const load = (name: string) =>
  loadTextPipeline({ directory: join(root, 'models', name), threads: 1, prefixCacheTokens: 0 });

const { codec } = await readTextModelDirectory(join(root, 'models/emoji-writer'));
/** Tokens that would end a JSON string; banned, so that all texts have the same length. */
const closing = Array.from({ length: codec.vocabularySize }, (_, id) => id).filter((id) =>
  codec.decode([id]).includes('"'),
);

const sizes = [1, 4, 8, 16];
const speeds: Record<string, Cell[]> = {};
const calls: Cell[] = [];
const others: Table[] = [];

publishAtEnd(() => ({
  name: 'text-steps',
  title: 'What the text pipelines do on one thread',
  notes: [
    'The embedded text models without engine, queue and network; the time includes reading the prompts.',
    'Texts under a grammar have 40 tokens each; medians of 9 rounds, with minimum and maximum. Sampling is over 49,152 tokens.',
  ],
  tables: [
    {
      title: 'Tokens a second (more is better)',
      columns: ['in flight', ...Object.keys(speeds)],
      rows: sizes.map((size, at) => [size, ...Object.values(speeds).map((each) => each[at])]),
      drawn: 'lines',
    },
    {
      title: 'Calls of the model for a token, emoji-writer-diffusion',
      columns: ['in flight', 'calls'],
      rows: sizes.map((size, at) => [size, calls[at]]),
    },
    ...others,
  ],
}));

/** Measures throughput with a constant number of rows in flight. */
async function speedOf(pipeline: TextPipeline, rows: number) {
  const table = new TextTable(pipeline);
  const total = 40 * Math.min(rows, 8);
  let started = 0;
  const startedAtMs = performance.now();
  while (started < total || table.size > 0) {
    while (started < total && table.size < rows) {
      const { prompt } = cases[started % cases.length]!;
      await table.join(`${started++}`, textInput({ prompt }));
    }
    await table.tick();
  }
  const seconds = (performance.now() - startedAtMs) / 1000;
  const results = [...table.results.values()];
  const tokens = results.reduce((sum, { facts }) => sum + facts.completion_tokens, 0);
  const called = results.reduce((sum, { facts }) => sum + facts.calls, 0);
  return { tokensPerSecond: tokens / seconds, callsPerToken: called / tokens };
}

it.each(['emoji-writer', 'emoji-writer-diffusion'])('throughput of %s', async (name) => {
  const pipeline = await load(name);
  await speedOf(pipeline, 8);
  const own: Cell[] = (speeds[name] = []);
  for (const size of sizes) {
    const { tokensPerSecond, callsPerToken } = await speedOf(pipeline, size);
    own.push(tokensPerSecond);
    if (name === 'emoji-writer-diffusion') calls.push(callsPerToken);
  }
  await pipeline.dispose();
});

it('time per token with and without a grammar', async () => {
  const pipeline = await load('emoji-writer');
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  const constraint = { type: 'json_schema' as const, json_schema: schema };
  const free = { ignoreEos: true };
  const kept = { constraint, logitBias: Object.fromEntries(closing.map((id) => [id, -100])) };
  const tokenMs = async (rows: number, changes: Partial<TextInput>) => {
    const table = new TextTable(pipeline);
    for (let at = 0; at < rows; at++)
      await table.join(`${at}`, textInput({ prompt: cases[at]!.prompt, maxTokens: 40, ...changes }));
    const startedAtMs = performance.now();
    await table.run();
    return (
      (performance.now() - startedAtMs) /
      [...table.results.values()].reduce((sum, { tokens }) => sum + tokens.length, 0)
    );
  };
  await tokenMs(1, kept);
  const rows: Cell[][] = [];
  for (const count of [1, 8]) {
    const rounds: { freeMs: number; keptMs: number }[] = [];
    for (let round = 0; round < 9; round++)
      rounds.push({ freeMs: await tokenMs(count, free), keptMs: await tokenMs(count, kept) });
    const of = (read: (round: (typeof rounds)[0]) => number) => medianWithRange(rounds.map(read));
    const ratio = of(({ freeMs, keptMs }) => keptMs / freeMs);
    rows.push([`${count} in flight`, of(({ freeMs }) => freeMs), of(({ keptMs }) => keptMs), ratio]);
  }
  const columns = ['', 'without a grammar', 'with one', 'ratio'];
  others.push({ title: 'ms a token (less is better)', columns, rows });
  await pipeline.dispose();
});

it('inter-token latency while a long prompt is read', async () => {
  const pipeline = await load('emoji-writer');
  const gapsWith = async (hasLongPrompt: boolean) => {
    const table = new TextTable(pipeline);
    for (let at = 0; at < 8; at++) {
      const { prompt } = cases[at]!;
      await table.join(`${at}`, textInput({ prompt, maxTokens: 60, ignoreEos: true }));
    }
    for (let turn = 0; turn < 20; turn++) await table.tick();
    const long = Array.from({ length: 240 }, (_, at) => 4 + at);
    if (hasLongPrompt) await table.join('long', textInput({ prompt: long, maxTokens: 1 }));
    const gaps: number[] = [];
    for (let turn = 0; turn < 10; turn++) {
      const beforeMs = performance.now();
      await table.tick();
      gaps.push(performance.now() - beforeMs);
    }
    await table.run();
    return gaps;
  };
  const rounds: { usual: number; beside: number }[] = [];
  for (let round = 0; round < 20; round++) {
    const alone = await gapsWith(false);
    const beside = await gapsWith(true);
    rounds.push({ usual: median(alone), beside: median(beside) });
  }
  others.push(
    tableOf('Gap of 8 rows that write, while 240 tokens are read, ms (less is better)', {
      ms: {
        'without the prompt': medianWithRange(rounds.map(({ usual }) => usual)),
        meanwhile: medianWithRange(rounds.map(({ beside }) => beside)),
      },
    }),
  );
  await pipeline.dispose();
});

it('samples one of 49,152 tokens', () => {
  const random = new RandomNumbers(1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const sets = Array.from({ length: 16 }, () => Float32Array.from({ length: 49_152 }, () => 3 * normal()));
  const all = { temperature: 1, topK: 0, topP: 1, minP: 0 };
  const ways = {
    greedy: { ...all, temperature: 0 },
    'top-k 50, top-p 0.9': { ...all, temperature: 0.8, topK: 50, topP: 0.9 },
    'top-p 0.9': { ...all, topP: 0.9 },
    'min-p 0.05': { ...all, minP: 0.05 },
    'temperature only': all,
  };
  const found: Record<string, number[]> = {};
  for (const [name, options] of Object.entries(ways)) {
    found[name] = Array.from({ length: 200 }, (_, at) => {
      const beforeMs = performance.now();
      chooseToken(sets[at % sets.length]!, options, random);
      return performance.now() - beforeMs;
    });
  }
  others.push(percentileTable('Choosing a token, ms (less is better)', found));
});
