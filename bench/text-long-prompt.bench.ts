/**
 * Inter-token latency of other rows while a prompt of 2,000 tokens is read, in wall and CPU time; the latter depends
 * less on other load. A step takes longer as texts grow, so each gap is compared with gaps of the same rows without the
 * prompt at the same text length.
 */
import { loadTextPipeline, type TextPipeline } from '@darkroom/language';
import { it } from 'vitest';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { provideSmollm2, whyNoSmollm2 } from '../test/systems/smollm2.ts';
import { publish } from './publish.ts';
import { median, medianWithRange } from './report.ts';
import { percentileTable, tableOf } from './table.ts';

const writers = 8;
const promptTokens = 2000;
/** Steps before the prompt arrives, and steps that each step is compared with, half of them before it. */
const turnsBefore = 60;
const turnsAlike = 10;
const rounds = 3;

interface Gap {
  wallMs: number;
  cpuMs: number;
}

async function turn(table: TextTable): Promise<Gap> {
  const [atMs, before] = [performance.now(), process.cpuUsage()];
  await table.tick();
  const { user, system } = process.cpuUsage(before);
  return { wallMs: performance.now() - atMs, cpuMs: (user + system) / 1000 };
}

/** Returns a prompt; seeds differ per round and row, so that nothing is in the cache. */
function promptOf(length: number, seed: number): number[] {
  return Array.from({ length }, (_, at) => 100 + ((at * 31 + seed * 1009) % 40_000));
}

async function tableOfWriters(pipeline: TextPipeline, seed: number): Promise<TextTable> {
  const table = new TextTable(pipeline);
  for (let row = 0; row < writers; row++)
    await table.join(`${row}`, textInput({ prompt: promptOf(37, seed + row), maxTokens: 1000, ignoreEos: true }));
  return table;
}

function leave(table: TextTable): void {
  for (let row = 0; row < writers; row++) table.leave(`${row}`);
}

/** Returns each gap of a round divided by the median gap without the prompt at about the same text length. */
function timesUsual(round: Record<'usual' | 'beside', Gap[]>, which: 'usual' | 'beside', kind: keyof Gap): number[] {
  return round[which].map((gap, at) => {
    const first = Math.max(0, Math.min(at - turnsAlike / 2, round.usual.length - turnsAlike));
    return gap[kind] / median(round.usual.slice(first, first + turnsAlike).map((alike) => alike[kind]));
  });
}

const missing = whyNoSmollm2();
if (missing !== undefined) console.log(`skipped the long prompt: ${missing}`);

it.skipIf(missing !== undefined)('inter-token latency while a long prompt is read', { timeout: 600_000 }, async () => {
  const directory = await provideSmollm2();
  const dtypes = { all: 'int8', parts: {} } as const;
  const pipeline = await loadTextPipeline({ directory, threads: 1, dtypes, prefixCacheTokens: 0 });
  const all: { usual: Gap[]; beside: Gap[]; firstMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const table = await tableOfWriters(pipeline, 200 * round);
    for (let at = 0; at < turnsBefore; at++) await table.tick();
    const beganAtMs = performance.now();
    await table.join('long', textInput({ prompt: promptOf(promptTokens, 200 * round + 99), maxTokens: 1 }));
    const beside: Gap[] = [];
    while (!table.results.has('long')) beside.push(await turn(table));
    const firstMs = performance.now() - beganAtMs;
    leave(table);
    const without = await tableOfWriters(pipeline, 200 * round + 100);
    for (let at = 0; at < turnsBefore; at++) await without.tick();
    const usual: Gap[] = [];
    while (usual.length < beside.length) usual.push(await turn(without));
    leave(without);
    all.push({ usual, beside, firstMs });
  }
  const aloneMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const beganAtMs = performance.now();
    await new TextTable(pipeline).write(textInput({ prompt: promptOf(promptTokens, 9000 + round), maxTokens: 1 }));
    aloneMs.push(performance.now() - beganAtMs);
  }
  await pipeline.dispose();
  const gapsOf = (which: 'usual' | 'beside', kind: keyof Gap) =>
    all.flatMap((one) => one[which].map((gap) => gap[kind]));
  const ratiosOf = (which: 'usual' | 'beside', kind: keyof Gap) => all.flatMap((one) => timesUsual(one, which, kind));
  const tables = (
    [
      ['wallMs', 'ms'],
      ['cpuMs', 'ms of a CPU'],
    ] as const
  ).flatMap(([kind, unit]) => [
    percentileTable(`Gap between two tokens of a row, ${unit} (less is better)`, {
      'without the prompt': gapsOf('usual', kind),
      meanwhile: gapsOf('beside', kind),
    }),
    percentileTable(`÷ a step of texts as long, ${unit} (less is better)`, {
      'without the prompt': ratiosOf('usual', kind),
      meanwhile: ratiosOf('beside', kind),
    }),
  ]);
  const above = ratiosOf('beside', 'wallMs').filter((ratio) => ratio > 2).length;
  publish({
    name: 'text-long-prompt',
    title: 'How long others wait while a long prompt comes in',
    notes: [
      `${writers} rows generate with SmolLM2 (int8, one thread) while a prompt of ${promptTokens.toLocaleString('en')} tokens is read. A step takes longer as texts grow, so each gap is compared with the median gap without the prompt at about the same text length. ${rounds} rounds.`,
      `The aim is at most twice that: ${above} of ${gapsOf('beside', 'wallMs').length} gaps were longer, in wall time.`,
    ],
    tables: [
      ...tables,
      tableOf('First token of the prompt, ms (less is better)', {
        ms: {
          'beside those who write': medianWithRange(all.map(({ firstMs }) => firstMs)),
          alone: medianWithRange(aloneMs),
        },
      }),
    ],
  });
});
