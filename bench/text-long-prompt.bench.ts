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
/** Before the prompt, and after it. */
const usualTurns = 20;
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
  const all: { usual: Gap[]; beside: Gap[] }[] = [];
  for (let round = 0; round < rounds; round++) {
    const table = new TextTable(pipeline);
    for (let row = 0; row < writers; row++) {
      const prompt = promptOf(37, 100 * round + row);
      await table.join(`${row}`, textInput({ prompt, maxTokens: 1000, ignoreEos: true }));
    }
    for (let at = 0; at < 20; at++) await table.turn();
    const usual: Gap[] = [];
    for (let at = 0; at < usualTurns; at++) usual.push(await turn(table));
    await table.join('long', textInput({ prompt: promptOf(promptTokens, 100 * round + 99), maxTokens: 1 }));
    const beside: Gap[] = [];
    while (!table.results.has('long')) beside.push(await turn(table));
    // Their own texts have grown meanwhile.
    for (let at = 0; at < usualTurns; at++) usual.push(await turn(table));
    all.push({ usual, beside });
    for (let row = 0; row < writers; row++) table.leave(`${row}`);
  }
  await pipeline.dispose();
  for (const kind of ['wallMs', 'cpuMs'] as const) {
    const at = (share: number) =>
      median(
        all.map(({ beside }) =>
          quantile(
            beside.map((gap) => gap[kind]),
            share,
          ),
        ),
      );
    const usual = median(all.map((one) => median(one.usual.map((gap) => gap[kind]))));
    const name = kind === 'wallMs' ? 'ms' : 'ms of a CPU';
    report(`${promptTokens} tokens are read beside ${writers} rows that write, ${name}; medians of ${rounds} rounds`, {
      'usual gap': usual,
      'gap meanwhile, median': at(0.5),
      'gap meanwhile, 95 of 100': at(0.95),
      'gap meanwhile, worst': at(1),
      'worst / usual': at(1) / usual,
      'tokens of the prompt a step': promptTokens / median(all.map(({ beside }) => beside.length)),
    });
  }
});
