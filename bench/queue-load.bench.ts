/**
 * How much of a Redis a thousand workers take. A thousand workers cannot run on a machine of two cores: this sends what they
 * would send, and takes the time of a CPU that Redis had for each second of theirs.
 */
import { type RequestWrite, splitOutput } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { it } from 'vitest';
import { cpuOf } from './redis-cpu.ts';
import { publish } from './publish.ts';
import { median, middle } from './report.ts';
import type { Cell } from './table.ts';
import { SimulatedPool, type Work } from './simulated-pool.ts';

const workers = Number(process.env['BENCH_WORKERS'] ?? 1000);
const rows = 8;
const waiting = 1000;
const rounds = 3;
const roundMs = 1000;

/** What stands in Redis of what is kept elsewhere (docs/bytes.md): so many bytes. */
const reference = Buffer.alloc(120, 'r');
const output = { index: 0, contentType: 'image/png', data: reference, facts: { seed: 7 }, chunkBytes: 409_600 };

function endingWith(contentType: string): Work['ending'] {
  return (delivery) => [
    ...splitOutput(delivery, { ...output, contentType }),
    { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } },
  ];
}

/** 20 steps in 5 s, a checkpoint in the middle; how far it is at each step, or once a second. */
function pictures(isEachStepSaid: boolean): Work {
  const turns = 20;
  return {
    turnMs: 250,
    turns,
    saying(delivery, turn, isSecond) {
      const said: RequestWrite[] = [];
      const progress = { index: 0, done: turn, total: turns };
      const of = { done: turn, total: turns };
      if (isEachStepSaid || isSecond || turn === 10) said.push({ type: 'progress', delivery, progress, of });
      if (turn === 10) said.push({ type: 'checkpoint', delivery, index: 0, done: turn, data: reference, origin: 'o' });
      if (turn === turns - 1) said.push({ type: 'release', delivery, slots: 1 });
      return said;
    },
    ending: endingWith('image/png'),
  };
}

/** 50 tokens a second and 500 in all, in pieces that go out 20 times a second. */
const texts: Work = {
  turnMs: 50,
  turns: 200,
  saying(delivery, turn) {
    const done = Math.ceil(turn * 2.5);
    const facts = { ids: '12345 23456 3456' };
    const said: RequestWrite[] = [
      {
        type: 'delta',
        delivery,
        index: 0,
        offset: turn * 10,
        text: ' some text',
        done,
        facts,
        of: { done, total: 500 },
      },
    ];
    // Every 16 tokens how far it is, every 10 a checkpoint.
    if (turn % 6 === 0)
      said.push({
        type: 'progress',
        delivery,
        progress: { index: 0, done, total: 500 },
        of: { done, total: 500 },
        isOfText: true,
      });
    if (turn % 4 === 0)
      said.push({
        type: 'checkpoint',
        delivery,
        index: 0,
        done,
        data: Buffer.alloc(4 * done + 60),
        origin: 'o',
        isOfText: true,
      });
    if (turn % 64 === 0) {
      const text = ' some text'.repeat(turn);
      said.unshift({ type: 'snapshot', delivery, index: 0, offset: 0, text, isWhole: true, of: { done, total: 500 } });
    }
    return said;
  },
  ending: endingWith('text/plain'),
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
    const cores = middle(shares.map((us) => us / 1e6 / seconds));
    const each = [median(shares) / median(ends), median(ends) / seconds, median(calls) / seconds];
    return [name, cores, ...each.map(Math.round)];
  } finally {
    await pool.close();
    await redis.stop();
  }
}

it('a thousand workers', { timeout: 1_800_000 }, async () => {
  const found = [
    await measure('pictures in 5 s, polled, progress once a second', pictures(false), false),
    await measure('pictures in 5 s, followed, progress of each step', pictures(true), true),
    await measure('texts at 50 tokens a second, followed', texts, true),
  ];
  const others = ['µs of Redis for each request', 'requests that end in a second', 'calls of workers in a second'];
  publish({
    name: 'queue-load',
    title: `How much of a Redis ${workers.toLocaleString('en')} workers of ${rows} rows take`,
    notes: [
      `A driver sends what so many workers, their former, APIs and janitors send in a second of theirs, by the store's own functions and the former's own code; what counts is the time of a CPU that Redis has for it. ${waiting.toLocaleString('en')} requests wait. Engines are stand-ins, previews off, bytes kept elsewhere. Medians of ${rounds} rounds, with the least and the most.`,
      'The aim is 0.40 of a core for a thousand workers; more takes several shards.',
      'The limit: storing a request, its part of a dispatch, and its output and end alone take more of Redis than the aim leaves for all of it (docs/benchmarks/queue-cost.md). They are scripts that check what they assume, count what they change and write a log, and nobody may see half of it.',
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
