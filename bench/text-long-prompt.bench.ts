/**
 * How long those who write wait while a prompt of 2,000 tokens comes in: the time between two of their tokens, on the wall and
 * of a CPU, which other work on the machine changes less.
 */
import { loadTextPipeline } from '@darkroom/language';
import { it } from 'vitest';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { provideSmollm2, whyNoSmollm2 } from '../test/systems/smollm2.ts';
import { publish } from './publish.ts';
import { median, middle, quantile } from './report.ts';
import { type Cell, percentileTable, tableOf } from './table.ts';

const writers = 8;
const promptTokens = 2000;
/** Turns without the prompt before it, and after it. */
const usualTurns = 60;
const rounds = 3;

interface Gap {
  wallMs: number;
  cpuMs: number;
}

async function turn(table: TextTable): Promise<Gap> {
  const [atMs, before] = [performance.now(), process.cpuUsage()];
  await table.turn();
  const { user, system } = process.cpuUsage(before);
  return { wallMs: performance.now() - atMs, cpuMs: (user + system) / 1000 };
}

/** Other tokens in each round and row, so that nothing is known already. */
function promptOf(length: number, seed: number): number[] {
  return Array.from({ length }, (_, at) => 100 + ((at * 31 + seed * 1009) % 40_000));
}

const missing = whyNoSmollm2();
if (missing !== undefined) console.log(`no long prompt: ${missing}`);

it.skipIf(missing !== undefined)('reads a long prompt beside those who write', { timeout: 600_000 }, async () => {
  const directory = await provideSmollm2();
  const dtypes = { all: 'int8', parts: {} } as const;
  const pipeline = await loadTextPipeline({ directory, threads: 1, dtypes, keptTokens: 0 });
  const all: { usual: Gap[]; beside: Gap[]; firstMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const table = new TextTable(pipeline);
    for (let row = 0; row < writers; row++) {
      const prompt = promptOf(37, 100 * round + row);
      await table.join(`${row}`, textInput({ prompt, maxTokens: 1000, ignoreEos: true }));
    }
    for (let at = 0; at < 20; at++) await table.turn();
    const usual: Gap[] = [];
    for (let at = 0; at < usualTurns; at++) usual.push(await turn(table));
    const beganAtMs = performance.now();
    await table.join('long', textInput({ prompt: promptOf(promptTokens, 100 * round + 99), maxTokens: 1 }));
    const beside: Gap[] = [];
    while (!table.results.has('long')) beside.push(await turn(table));
    const firstMs = performance.now() - beganAtMs;
    // Their own texts have grown meanwhile.
    for (let at = 0; at < usualTurns; at++) usual.push(await turn(table));
    all.push({ usual, beside, firstMs });
    for (let row = 0; row < writers; row++) table.leave(`${row}`);
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
  const gapTable = (kind: keyof Gap, unit: string) =>
    percentileTable(`Gap between two tokens of a row, ${unit} (less is better)`, {
      'without the prompt': gapsOf('usual', kind),
      meanwhile: gapsOf('beside', kind),
    });
  const timesUsual = (kind: keyof Gap): Record<string, Cell> => {
    const [normal, beside] = [median(gapsOf('usual', kind)), gapsOf('beside', kind)];
    const of = (share: number): number => quantile(beside, share) / normal;
    const tooLong = beside.filter((gap) => gap > 2 * normal).length / beside.length;
    return { median: of(0.5), p99: of(0.99), worst: of(1), 'more than twice, share of all': tooLong };
  };
  publish({
    name: 'text-long-prompt',
    title: 'How long others wait while a long prompt comes in',
    notes: [
      `${writers} rows write with SmolLM2 (int8, one thread) while a prompt of ${promptTokens.toLocaleString('en')} tokens is read; the same rows without it are the measure. ${rounds} rounds, ${gapsOf('usual', 'wallMs').length} gaps without the prompt and ${gapsOf('beside', 'wallMs').length} beside it. The aim is twice the median at most.`,
    ],
    tables: [
      gapTable('wallMs', 'ms'),
      gapTable('cpuMs', 'ms of a CPU'),
      tableOf('Gap meanwhile ÷ the median without the prompt (less is better)', {
        'on the wall': timesUsual('wallMs'),
        'of a CPU': timesUsual('cpuMs'),
      }),
      tableOf('First token of the prompt, ms (less is better)', {
        ms: { 'beside those who write': middle(all.map(({ firstMs }) => firstMs)), alone: middle(aloneMs) },
      }),
    ],
  });
});
