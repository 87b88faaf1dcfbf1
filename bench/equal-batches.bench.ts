/**
 * Rows that join at any step against batches of equal parameters, on a stand-in for a GPU, in virtual time: only the clock is
 * simulated. Darkroom's side is its policy (`planLeases`) and its engine. The other side takes the oldest request and up to seven
 * equal ones out of all that wait, and runs them to their end in the same engine. Requests take no time to be handed over, on
 * either side.
 */
import { planLeases } from '@darkroom/batching';
import type { OpenWorker, Pipeline, PipelineRow, RowRequest, WaitingRequest } from '@darkroom/core';
import { Engine, type EngineEvent } from '@darkroom/executor';
import { it } from 'vitest';
import { RandomNumbers } from '../libs/language/src/sampling/random-numbers.ts';
import { publish } from './publish.ts';
import { median, quantile } from './report.ts';
import type { Table } from './table.ts';

const maxRows = 8;
const inFlightCounts = [8, 16, 32, 64];
const requestsPerRun = 2000;
const seeds = [1, 2, 3];

/** What a call of the denoiser costs at 512 × 512, by the rows of its batch, over that of one row. Between them by straight line. */
const costs: readonly (readonly [rows: number, cost: number])[] = [
  [1, 1],
  [2, 1.1],
  [3, 1.12],
  [4, 1.44],
  [8, 2.55],
  [16, 4.99],
];
/** Of one row; it cancels out of all ratios. */
const callMs = 30;

interface Parameters {
  steps: number;
  guidance: number;
}

interface Mix {
  ask: (random: RandomNumbers) => Parameters;
  /** Rows of the denoiser's batch for a picture with guidance: two, or one where the model itself is told the guidance. */
  guidedRows: 1 | 2;
}

const anySteps: Mix['ask'] = (random) => ({ steps: between(random, 8, 50), guidance: between(random, 1, 7) });

/** What clients ask for. */
const mixes: Readonly<Record<string, Mix>> = {
  'steps 8–50, guidance 1–7': { ask: anySteps, guidedRows: 2 },
  'the same, one row a picture': { ask: anySteps, guidedRows: 1 },
  'steps 20, 30, 50, guidance 1, 3, 7': {
    ask: (random) => ({ steps: [20, 30, 50][between(random, 0, 2)]!, guidance: [1, 3, 7][between(random, 0, 2)]! }),
    guidedRows: 2,
  },
};

interface Asked extends Parameters {
  id: string;
  askedAtMs: number;
}

interface Served {
  /** Requests a second of virtual time. */
  rate: number;
  /** s of virtual time. */
  p50: number;
  p99: number;
}

function between(random: RandomNumbers, low: number, high: number): number {
  return low + Math.floor(random.next() * (high - low + 1));
}

/** A call with so many rows, ms. */
function callCostMs(rows: number): number {
  const above = costs.findIndex(([each]) => each >= rows);
  const [highRows, high] = costs[above]!;
  const [lowRows, low] = costs[Math.max(0, above - 1)]!;
  const share = highRows === lowRows ? 0 : (rows - lowRows) / (highRows - lowRows);
  return callMs * (low + share * (high - low));
}

interface SimulatedRow extends PipelineRow {
  asked: Asked;
  done: number;
}

function rowOf(asked: Asked): SimulatedRow {
  return {
    asked,
    done: 0,
    index: 0,
    shapeKey: '512x512',
    slots: 1,
    get isDone() {
      return this.done === asked.steps;
    },
    get stepsLeft() {
      return asked.steps - this.done;
    },
  };
}

/** Its steps only move the clock. */
function simulatedPipeline(clock: { nowMs: number }, { guidedRows }: Mix): Pipeline<SimulatedRow> {
  return {
    card: undefined as never,
    components: [],
    createRows: async ({ input }) => [rowOf(input as Asked)],
    settle: async () => {},
    async step(rows) {
      const modelRows = rows.reduce((sum, { asked }) => sum + (asked.guidance > 1 ? guidedRows : 1), 0);
      clock.nowMs += callCostMs(modelRows);
      for (const each of rows) each.done += 1;
      return { modelRows, events: new Map(), failures: new Map() };
    },
    finish: async () => ({ data: new Uint8Array(), facts: {} }),
    checkpoint: () => ({ done: 0, data: new Uint8Array() }),
    release() {},
    dispose: async () => {},
  };
}

/** What is under way on the worker, and what the former is told of it. */
interface Board {
  waiting: Asked[];
  /** Requests that have a place on the worker. */
  placed: Set<string>;
  /** Those that are there, with a place or in their last step. */
  present: Set<string>;
  nowMs: number;
}

type Choose = (board: Board) => readonly string[];

/** Darkroom's policy, as the former asks it. */
function joiningRows({ waiting, placed, present, nowMs }: Board): readonly string[] {
  const worker: OpenWorker = {
    id: 'worker',
    isIdle: present.size === 0,
    isAsleep: false,
    free: maxRows - placed.size,
    capacity: maxRows,
    shapes: present.size === 0 ? [] : ['512x512'],
  };
  const requests = waiting.map(({ id, askedAtMs }): WaitingRequest => ({
    id,
    shapeKey: '512x512',
    slots: 1,
    attempts: 0,
    waitingSinceMs: askedAtMs,
  }));
  const policy = { maxSize: maxRows, timeoutMs: 10, isBatching: true, maxAttempts: 3, lookahead: 0 };
  const workers = worker.free > 0 ? [worker] : [];
  return planLeases({ nowMs, reservedWorkerId: undefined, workers, requests }, policy).leases.flatMap(
    ({ requestIds }) => requestIds,
  );
}

/** A batch begins when the one before it has ended. */
function equalBatches({ waiting, present }: Board): readonly string[] {
  const [first] = waiting;
  if (first === undefined || present.size > 0) return [];
  const equal = waiting.filter(({ steps, guidance }) => steps === first.steps && guidance === first.guidance);
  return equal.slice(0, maxRows).map(({ id }) => id);
}

/** Clients that ask for the next picture as soon as they have theirs. */
async function serve(choose: Choose, mix: Mix, inFlight: number, seed: number): Promise<Served> {
  const random = new RandomNumbers(seed);
  const board: Board = { waiting: [], placed: new Set(), present: new Set(), nowMs: 0 };
  const all = new Map<string, Asked>();
  const seconds: number[] = [];
  let finish: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const ask = (): void => {
    if (all.size === requestsPerRun) return;
    const asked: Asked = { id: `${all.size}`, askedAtMs: board.nowMs, ...mix.ask(random) };
    all.set(asked.id, asked);
    board.waiting.push(asked);
  };
  const dispatch = (): void => {
    const ids = new Set(choose(board));
    const chosen = board.waiting.filter(({ id }) => ids.has(id));
    board.waiting = board.waiting.filter(({ id }) => !ids.has(id));
    for (const { id } of chosen) {
      board.placed.add(id);
      board.present.add(id);
    }
    engine.submit(chosen.map((input): RowRequest => ({ id: input.id, input })));
  };
  const hear = (event: EngineEvent): void => {
    if (event.type === 'row-releasing') board.placed.delete(event.requestId);
    if (event.type !== 'request-done') return;
    board.placed.delete(event.requestId);
    board.present.delete(event.requestId);
    seconds.push((board.nowMs - all.get(event.requestId)!.askedAtMs) / 1000);
    if (seconds.length === requestsPerRun) finish();
    ask();
  };
  const onEvents = (events: readonly EngineEvent[]): void => {
    for (const event of events) hear(event);
    dispatch();
  };
  const engine = new Engine({
    pipeline: simulatedPipeline(board, mix),
    maxSlots: maxRows,
    onEvents,
    now: () => board.nowMs,
  });
  for (let client = 0; client < inFlight; client++) ask();
  dispatch();
  await finished;
  return { rate: seconds.length / (board.nowMs / 1000), p50: quantile(seconds, 0.5), p99: quantile(seconds, 0.99) };
}

/** @returns Darkroom's over the other's. */
async function compare(mix: Mix, inFlight: number): Promise<Served> {
  const runs: { own: Served; other: Served }[] = [];
  for (const seed of seeds) {
    const own = await serve(joiningRows, mix, inFlight, seed);
    runs.push({ own, other: await serve(equalBatches, mix, inFlight, seed) });
  }
  const ratio = (read: (served: Served) => number): number =>
    median(runs.map(({ own, other }) => read(own) / read(other)));
  return {
    rate: ratio(({ rate }) => rate),
    p50: ratio(({ p50 }) => p50),
    p99: ratio(({ p99 }) => p99),
  };
}

it('joining rows beside batches of equal parameters', { timeout: 600_000 }, async () => {
  const found = new Map<string, Served[]>();
  for (const [name, mix] of Object.entries(mixes)) {
    found.set(name, []);
    for (const inFlight of inFlightCounts) found.get(name)!.push(await compare(mix, inFlight));
  }
  const table = (title: string, read: (served: Served) => number): Table => ({
    title,
    columns: ['requests in flight', ...found.keys()],
    rows: inFlightCounts.map((count, at) => [count, ...[...found.values()].map((each) => read(each[at]!))]),
    drawn: 'lines',
  });
  publish({
    name: 'equal-batches',
    title: 'Joining rows ÷ batches of equal parameters, on a stand-in for a GPU',
    notes: [
      `Simulated time, real policy and engine: a call costs ${costs.map(([batch, cost]) => `${cost} (${batch})`).join(', ')} by the rows of its batch. A picture with guidance has two of them, except where the model is told the guidance.`,
      `${requestsPerRun} requests a run, one worker of ${maxRows} rows, clients that ask again at once; medians of ${seeds.length} seeds. Handing over and decoding cost nothing on either side.`,
      'The aim is 1.9 times as many requests a second, at a p99 of 0.55 of the other.',
      'The other side searches all that wait for requests with equal steps and guidance.',
      `The limit: a step of a guided picture alone is a call of 2 rows, one of eight a call of 16, so ${((8 * callCostMs(2)) / callCostMs(16)).toFixed(2)} times as many with guidance, and ${((8 * callCostMs(1)) / callCostMs(8)).toFixed(2)} with one row a picture.`,
    ],
    tables: [
      table('Requests a second, ratio (more is better)', ({ rate }) => rate),
      table('p50, ratio (less is better)', ({ p50 }) => p50),
      table('p99, ratio (less is better)', ({ p99 }) => p99),
    ],
  });
});
