/**
 * How long those who write wait while a prompt of 2,000 tokens comes in: the time between two of their tokens, on the wall and
 * of a CPU, which other work on the machine changes less.
 */
import { loadTextPipeline } from '@darkroom/language';
import { it } from 'vitest';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { provideSmollm2, whyNoSmollm2 } from '../test/systems/smollm2.ts';
import { median, quantile, report } from './report.ts';

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
  for (const [kind, name] of [
    ['wallMs', 'ms'],
    ['cpuMs', 'ms of a CPU'],
  ] as const) {
    const usual = all.flatMap((one) => one.usual.map((gap) => gap[kind]));
    const beside = all.flatMap((one) => one.beside.map((gap) => gap[kind]));
    const normal = median(usual);
    const line = (gaps: readonly number[]) =>
      [0.5, 0.99, 1]
        .map((share) => quantile(gaps, share))
        .map((gap) => `${gap.toFixed(0)} (× ${(gap / normal).toFixed(2)})`)
        .join(', ');
    const share = beside.filter((gap) => gap > 2 * normal).length / beside.length;
    report(
      `${promptTokens} tokens are read beside ${writers} rows that write, ${name}: median, p99, worst of ${rounds} rounds`,
      {
        'gap without the prompt': `${line(usual)}, ${usual.length} gaps`,
        'gap meanwhile': `${line(beside)}, ${beside.length} gaps`,
        'worst of each round': all
          .map((one) =>
            (
              quantile(
                one.beside.map((gap) => gap[kind]),
                1,
              ) / normal
            ).toFixed(2),
          )
          .join(', '),
        'more than twice the usual': `${(100 * share).toFixed(1)} of 100`,
      },
    );
  }
  report('first token of the long prompt, ms, medians', {
    'beside those who write': median(all.map(({ firstMs }) => firstMs)),
    alone: median(aloneMs),
  });
});
