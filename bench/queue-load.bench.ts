/**
 * CPU load of Redis with a thousand workers. They cannot run on a machine of two cores, so this sends the commands that
 * they would send, and measures the CPU time of Redis per simulated second.
 */
import { type RequestWrite, splitOutput } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { it } from 'vitest';
import { cpuOf } from './redis-cpu.ts';
import { publish } from './publish.ts';
import { median, medianWithRange } from './report.ts';
import type { Cell } from './table.ts';
import { SimulatedPool, type Work } from './simulated-pool.ts';

const workers = Number(process.env['BENCH_WORKERS'] ?? 1000);
const rows = 8;
const waiting = 1000;
const rounds = 3;
const roundMs = 1000;

/** Reference in Redis to bytes that are stored elsewhere (docs/bytes.md), of realistic length. */
const reference = Buffer.alloc(120, 'r');
const output = { index: 0, contentType: 'image/png', data: reference, facts: { seed: 7 } };

function endWritesOf(contentType: string): Work['endWrites'] {
  return (delivery) => [
    ...splitOutput(delivery, { ...output, contentType }),
    { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } },
  ];
}

/** Returns work of 20 steps in 5 s with a checkpoint in the middle, and progress at each step or once a second. */
function images(isEachStepReported: boolean): Work {
  const steps = 20;
  return {
    stepMs: 250,
    steps,
    stepWrites(delivery, step, isSecond) {
      const writes: RequestWrite[] = [];
      const progress = { index: 0, done: step, total: steps };
      const of = { done: step, total: steps };
      if (isEachStepReported || isSecond || step === 10) writes.push({ type: 'progress', delivery, progress, of });
      if (step === 10)
        writes.push({ type: 'checkpoint', delivery, index: 0, done: step, data: reference, origin: 'o' });
      if (step === steps - 1) writes.push({ type: 'release', delivery, slots: 1 });
      return writes;
    },
    endWrites: endWritesOf('image/png'),
  };
}

/** Texts of 500 tokens at 50 tokens per second, in chunks sent 20 times per second. */
const texts: Work = {
  stepMs: 50,
  steps: 200,
  stepWrites(delivery, step) {
    const done = Math.ceil(step * 2.5);
    const facts = { ids: '12345 23456 3456' };
    const writes: RequestWrite[] = [
      {
        type: 'delta',
        delivery,
        index: 0,
        offset: step * 10,
        text: ' some text',
        done,
        facts,
        of: { done, total: 500 },
      },
    ];
    // Progress about every 16 tokens, a checkpoint every 10.
    if (step % 6 === 0)
      writes.push({
        type: 'progress',
        delivery,
        progress: { index: 0, done, total: 500 },
        of: { done, total: 500 },
        isOfText: true,
      });
    if (step % 4 === 0)
      writes.push({
        type: 'checkpoint',
        delivery,
        index: 0,
        done,
        data: Buffer.alloc(4 * done + 60),
        origin: 'o',
        isOfText: true,
      });
    if (step % 64 === 0) {
      const text = ' some text'.repeat(step);
      writes.unshift({
        type: 'snapshot',
        delivery,
        index: 0,
        offset: 0,
        text,
        isWhole: true,
        of: { done, total: 500 },
      });
    }
    return writes;
  },
  endWrites: endWritesOf('text/plain'),
};

async function measure(name: string, work: Work, isFollowed: boolean): Promise<Cell[]> {
  const redis = await startPrivateRedis();
  const pool = new SimulatedPool({ url: redis.url, workers, rows, work, isFollowed, waiting });
  try {
    await pool.fill();
    const shares: number[] = [];
    const ends: number[] = [];
    const calls: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const [before, ended, called] = [await cpuOf(pool.store), pool.ended, pool.calls];
      await pool.run(roundMs);
      shares.push((await cpuOf(pool.store)) - before);
      ends.push(pool.ended - ended);
      calls.push(pool.calls - called);
    }
    const seconds = roundMs / 1000;
    const cores = medianWithRange(shares.map((us) => us / 1e6 / seconds));
    const each = [median(shares) / median(ends), median(ends) / seconds, median(calls) / seconds];
    return [name, cores, ...each.map(Math.round)];
  } finally {
    await pool.close();
    await redis.stop();
  }
}

it('a thousand workers', { timeout: 1_800_000 }, async () => {
  const found = [
    await measure('images in 5 s, polled, progress once a second', images(false), false),
    await measure('images in 5 s, followed, progress of each step', images(true), true),
    await measure('texts at 50 tokens a second, followed', texts, true),
  ];
  const others = ['µs of Redis for each request', 'requests that end in a second', 'calls of workers in a second'];
  publish({
    name: 'queue-load',
    title: `How much of a Redis ${workers.toLocaleString('en')} workers of ${rows} rows take`,
    notes: [
      `A driver sends the commands of these workers, their batch-former, APIs and janitors, with the store's own functions and the former's own code, in simulated time; the result is the CPU time of Redis. ${waiting.toLocaleString('en')} requests wait. Simulated engines, previews off, bytes stored elsewhere. Medians of ${rounds} rounds, with minimum and maximum.`,
      'The aim is 0.40 of a core for a thousand workers; more takes several shards.',
      'The limit: storing a request, its share of a dispatch, and its output and end alone take more of Redis than the aim allows in total (docs/benchmarks/queue-cost.md). These scripts check preconditions, update counters and write a log atomically.',
    ],
    tables: [
      {
        title: 'Cores of Redis (less is better)',
        columns: ['', 'cores'],
        rows: found.map((row) => row.slice(0, 2)),
        drawn: 'bars',
      },
      { title: 'And', columns: ['', ...others], rows: found.map(([name, , ...each]) => [name, ...each]) },
    ],
  });
});
