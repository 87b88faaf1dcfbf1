/**
 * Continuous batching (rows join at any step) against batches of equal parameters, on a simulated GPU in virtual time.
 * Ours is the real policy (`planLeases`) and engine; the other takes the oldest request and up to seven equal waiting
 * ones, and runs them to the end in the same engine. Dispatch takes no time on either side.
 */
import { planLeases } from '@darkroom/batching';
import type { OpenWorker, Pipeline, PipelineRow, RowRequest, QueuedRequest } from '@darkroom/core';
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

/** Relative cost of a denoiser call at 512 × 512 by rows of its batch (one row = 1); interpolated linearly. */
const costs: readonly (readonly [rows: number, cost: number])[] = [
  [1, 1],
  [2, 1.1],
  [3, 1.12],
  [4, 1.44],
  [8, 2.55],
  [16, 4.99],
];
/** Time of a call with one row; cancels out of all ratios. */
const callMs = 30;

interface Parameters {
  steps: number;
  guidance: number;
}

interface Mix {
  draw: (random: RandomNumbers) => Parameters;
  /** Denoiser rows of an image with guidance: two, or one if guidance is an input of the model. */
  guidedRows: 1 | 2;
}

const anySteps: Mix['draw'] = (random) => ({ steps: between(random, 8, 50), guidance: between(random, 1, 7) });

/** Mixes of request parameters. */
const mixes: Readonly<Record<string, Mix>> = {
  'steps 8–50, guidance 1–7': { draw: anySteps, guidedRows: 2 },
  'the same, one row an image': { draw: anySteps, guidedRows: 1 },
  'steps 20, 30, 50, guidance 1, 3, 7': {
    draw: (random) => ({ steps: [20, 30, 50][between(random, 0, 2)]!, guidance: [1, 3, 7][between(random, 0, 2)]! }),
    guidedRows: 2,
  },
};

interface SimulatedRequest extends Parameters {
  id: string;
  submittedAtMs: number;
}

interface Served {
  /** Requests per second of virtual time. */
  rate: number;
  /** Latency in s of virtual time. */
  p50: number;
  p99: number;
}

function between(random: RandomNumbers, low: number, high: number): number {
  return low + Math.floor(random.next() * (high - low + 1));
}

/** Returns the time of a call with this many rows in ms. */
function callCostMs(rows: number): number {
  const above = costs.findIndex(([each]) => each >= rows);
  const [highRows, high] = costs[above]!;
  const [lowRows, low] = costs[Math.max(0, above - 1)]!;
  const share = highRows === lowRows ? 0 : (rows - lowRows) / (highRows - lowRows);
  return callMs * (low + share * (high - low));
}

interface SimulatedRow extends PipelineRow {
  request: SimulatedRequest;
  done: number;
}

function rowOf(request: SimulatedRequest): SimulatedRow {
  return {
    request,
    done: 0,
    index: 0,
    shapeKey: '512x512',
    slots: 1,
    get isDone() {
      return this.done === request.steps;
    },
    get stepsLeft() {
      return request.steps - this.done;
    },
  };
}

/** Creates a pipeline whose steps only advance the clock. */
function simulatedPipeline(clock: { nowMs: number }, { guidedRows }: Mix): Pipeline<SimulatedRow> {
  return {
    card: undefined as never,
    components: [],
    createRows: async ({ input }) => [rowOf(input as SimulatedRequest)],
    settle: async () => {},
    async step(rows) {
      const modelRows = rows.reduce((sum, { request }) => sum + (request.guidance > 1 ? guidedRows : 1), 0);
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

/** State of the queue and the worker, as the batch-former sees it. */
interface Board {
  waiting: SimulatedRequest[];
  /** Requests that occupy a slot of the worker. */
  placed: Set<string>;
  /** Requests on the worker, including those that have released their slot before their last step ends. */
  present: Set<string>;
  nowMs: number;
}

type Choose = (board: Board) => readonly string[];

/** Darkroom's policy, called like by the batch-former. */
function joiningRows({ waiting, placed, present, nowMs }: Board): readonly string[] {
  const worker: OpenWorker = {
    id: 'worker',
    isIdle: present.size === 0,
    isAsleep: false,
    free: maxRows - placed.size,
    capacity: maxRows,
    shapes: present.size === 0 ? [] : ['512x512'],
  };
  const requests = waiting.map(({ id, submittedAtMs }): QueuedRequest => ({
    id,
    shapeKey: '512x512',
    slots: 1,
    attemptsLeft: 3,
    waitingSinceMs: submittedAtMs,
  }));
  const policy = { maxSize: maxRows, timeoutMs: 10 };
  const workers = worker.free > 0 ? [worker] : [];
  return planLeases({ nowMs, reservedWorkerId: undefined, workers, requests }, policy).leases.flatMap(
    ({ requestIds }) => requestIds,
  );
}

/** Batches of equal parameters: a batch starts when the previous one has ended. */
function equalBatches({ waiting, present }: Board): readonly string[] {
  const [first] = waiting;
  if (first === undefined || present.size > 0) return [];
  const equal = waiting.filter(({ steps, guidance }) => steps === first.steps && guidance === first.guidance);
  return equal.slice(0, maxRows).map(({ id }) => id);
}

/** Runs a closed loop of clients that submit the next request when the last one ends. */
async function serve(choose: Choose, mix: Mix, inFlight: number, seed: number): Promise<Served> {
  const random = new RandomNumbers(seed);
  const board: Board = { waiting: [], placed: new Set(), present: new Set(), nowMs: 0 };
  const all = new Map<string, SimulatedRequest>();
  const seconds: number[] = [];
  let finish: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const submit = (): void => {
    if (all.size === requestsPerRun) return;
    const request: SimulatedRequest = { id: `${all.size}`, submittedAtMs: board.nowMs, ...mix.draw(random) };
    all.set(request.id, request);
    board.waiting.push(request);
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
  const onEvent = (event: EngineEvent): void => {
    if (event.type === 'row-releasing') board.placed.delete(event.requestId);
    if (event.type !== 'request-done') return;
    board.placed.delete(event.requestId);
    board.present.delete(event.requestId);
    seconds.push((board.nowMs - all.get(event.requestId)!.submittedAtMs) / 1000);
    if (seconds.length === requestsPerRun) finish();
    submit();
  };
  const onEvents = (events: readonly EngineEvent[]): void => {
    for (const event of events) onEvent(event);
    dispatch();
  };
  const engine = new Engine({
    pipeline: simulatedPipeline(board, mix),
    maxSlots: maxRows,
    onEvents,
    now: () => board.nowMs,
  });
  for (let client = 0; client < inFlight; client++) submit();
  dispatch();
  await finished;
  return { rate: seconds.length / (board.nowMs / 1000), p50: quantile(seconds, 0.5), p99: quantile(seconds, 0.99) };
}

/** Returns the ratios of Darkroom to the other policy. */
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

it('continuous batching against batches of equal parameters', { timeout: 600_000 }, async () => {
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
      `Simulated time, real policy and engine: a call costs ${costs.map(([batch, cost]) => `${cost} (${batch})`).join(', ')} by the rows of its batch. An image with guidance has two rows, or one if guidance is an input of the model.`,
      `${requestsPerRun} requests per run, one worker of ${maxRows} rows, clients in a closed loop; medians of ${seeds.length} seeds. Dispatch and decoding cost nothing on either side.`,
      'The aim is 1.9 times as many requests per second, at 0.55 of the p99 of the other.',
      'The other side searches the full queue for requests with equal steps and guidance.',
      `The limit: a step of a guided image alone is a call of 2 rows, one of eight a call of 16, so ${((8 * callCostMs(2)) / callCostMs(16)).toFixed(2)} times as many with guidance, and ${((8 * callCostMs(1)) / callCostMs(8)).toFixed(2)} with one row an image.`,
    ],
    tables: [
      table('Requests a second, ratio (more is better)', ({ rate }) => rate),
      table('p50, ratio (less is better)', ({ p50 }) => p50),
      table('p99, ratio (less is better)', ({ p99 }) => p99),
    ],
  });
});
