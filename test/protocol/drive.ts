/** Does what an action says by the store's own functions, so by the real scripts. */
import type { Dispatchable } from '@darkroom/core';
import {
  admitRequest,
  askWorker,
  cancelRequest,
  type Delivery,
  dispatchRequests,
  drainWorker,
  expireRequests,
  heartbeatWorker,
  readDispatchable,
  registerWorker,
  type RequestWrite,
  resumeWorker,
  splitOutput,
  type StoreConnection,
  sweepWorkers,
  unregisterWorker,
  withdrawWorker,
  writeBatch,
} from '@darkroom/store';
import { testEnvelope } from '@darkroom/testing';
import { beginHistory, type Call, type History, leasesOf } from './history.ts';
import { type Action, type Lease, type Over, type State, slots, type What, whats } from './state.ts';
import { owners, requestIds, workerIds, type Worlds } from './world.ts';

export interface World {
  store: StoreConnection;
  /** The model whose keys it has. */
  name: string;
  history: History;
}

/** What went to Redis, and what Redis says to it. */
export interface Sent {
  call: Call;
  reply: Promise<unknown>;
}

/** Time that no test waits for, ms. */
const longMs = 3_600_000;
export const lives = { 1: 'first', 2: 'second' } as const;
export const bytes = 1000;
const paces = { costMs: { fast: 2, slow: 4 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 7 };

/** A world in which nothing has happened but one sweep: the first always counts, and no other has to. */
export async function begin(store: StoreConnection, name: string, state: State, worlds: Worlds): Promise<History> {
  const history = beginHistory();
  await send({ store, name, history }, state, { do: 'sweep' })!.reply;
  return { ...history, look: await worlds.look(baseOf({ store, name })) };
}

/** What a former sees. */
export function view(world: World, { requests, workers }: State): Promise<Dispatchable> {
  const options = { maxWorkers: workers.length, maxRequests: requests.length };
  return readDispatchable(record(world, []), world.name, options);
}

export function baseOf({ store, name }: Pick<World, 'store' | 'name'>): string {
  return store.keysOf(name).base;
}

/** Sends all that an action needs without waiting for anything, so that much of it can be on its way; `undefined` for what needs no script. */
export function send(world: World, state: State, action: Action): Sent | undefined {
  const { store, history } = world;
  const calls: Sent[] = [];
  const recording = record(world, calls);
  if (action.do === 'expire' && action.over !== 'none') age(world, action.request, action.over);
  if (action.do === 'dispatch' && action.late) age(world, action.late.request, action.late.over);
  const early = before(world, state, action);
  const doing = early === undefined ? perform(recording, world, state, action) : replay(world, early, calls);
  // Who sent it looks at the reply itself.
  doing?.catch(() => {});
  if (doing === undefined) {
    const lapsed = action.do === 'lapse-mark' ? `drained:${workerIds[history.workers[action.worker]!]}` : 'reserved';
    void store.redis.del(`${baseOf(world)}:${lapsed}`);
  }
  return calls[0];
}

/** Sends a command again, byte for byte. */
export function sendAgain(world: World, call: Call): Sent {
  const calls: Sent[] = [];
  void replay(world, call, calls).catch(() => {});
  return calls[0]!;
}

function replay(world: World, [command, ...values]: Call, calls: Sent[]): Promise<unknown> {
  const { redis } = record(world, calls) as unknown as {
    redis: Record<string, (...values: unknown[]) => Promise<unknown>>;
  };
  return redis[command]!(baseOf(world), ...values);
}

/** The store, but for this world's keys alone; it notes what is sent. */
function record({ store, name }: World, calls: Sent[]): StoreConnection {
  const keys = store.keysOf(name);
  const commands = store.redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const get =
    (_target: object, command: string) =>
    (base: unknown, ...values: unknown[]) => {
      const reply = commands[command]!(base, ...values);
      calls.push({ call: [command, ...values], reply });
      // On a slow machine a reservation must not be over by itself.
      if (command === 'dispatch/dispatch-requests') void store.redis.pexpire(keys.reserved, longMs);
      return reply;
    };
  const redis = { value: new Proxy({}, { get }) };
  return Object.create(store, {
    redis,
    keysOf: { value: () => keys },
    keysOfRequest: { value: () => keys },
  }) as StoreConnection;
}

/** What was sent before, if an action is that again: the same submit, or a dispatch whose first answer came late or never. */
function before({ history }: World, state: State, action: Action): Call | undefined {
  if (action.do === 'admit-again') return history.admissions.get(action.request);
  if (action.do !== 'dispatch') return undefined;
  const call = history.dispatches.get(planOf(history, action));
  return call && (action.own !== undefined || ownOf(call, state, history).length === 0) ? call : undefined;
}

/** The requests that run by a dispatch. */
function ownOf([, id]: Call, { requests }: State, { look, workers }: History): number[] {
  return requests.flatMap(({ worker }, request) => {
    const token = worker === null ? undefined : leasesOf(look, workers[worker]!).get(request);
    return token?.startsWith(String(id)) === true ? [request] : [];
  });
}

/** Every dispatch by which something runs, to be sent again: its answer never came, and much has happened since. */
export function earlierDispatches(state: State, history: History): Action[] {
  return [...history.dispatches].flatMap(([plan, call]): Action[] => {
    const own = ownOf(call, state, history);
    const [leases, reserve] = JSON.parse(plan) as [Lease[], number | null];
    const named = leases.map((lease) => ({ ...lease, worker: history.workers.indexOf(lease.worker) }));
    if (own.length === 0 || reserve !== null) return [];
    return [{ do: 'dispatch', leases: named, own }];
  });
}

/** Names a dispatch by what it decides, in this world's names. */
export function planOf({ workers }: History, { leases, reserve }: Extract<Action, { do: 'dispatch' }>): string {
  return JSON.stringify([leases.map((lease) => ({ ...lease, worker: workers[lease.worker] })), workers[reserve ?? -1]]);
}

function perform(store: StoreConnection, world: World, state: State, action: Action): Promise<unknown> | undefined {
  const { name: model, history } = world;
  const nameOf = (worker: number): { model: string; workerId: string } => ({
    model,
    workerId: workerIds[history.workers[worker]!]!,
  });
  switch (action.do) {
    case 'admit':
    case 'admit-other':
      return admitRequest(store, envelopeOf(model, action.request), { queueMaxLength: 100, unserved: 'accept' });
    case 'cancel':
      return cancelRequest(store, requestIds[action.request]!);
    case 'expire':
      return expireRequests(store, model);
    case 'dispatch': {
      const leases = action.leases.map(({ worker, isAlone, requests }) => {
        const { workerId } = nameOf(worker);
        return { workerId, isExclusive: isAlone, requestIds: requests.map((request) => requestIds[request]!) };
      });
      const reserveWorkerId = action.reserve === undefined ? undefined : nameOf(action.reserve).workerId;
      return dispatchRequests(store, model, leases, { reserveWorkerId });
    }
    case 'write':
    case 'write-stale':
      return write(store, world, state, action);
    case 'register':
      return registerWorker(
        store,
        { ...nameOf(action.worker), incarnation: lives[action.life] },
        { state: action.as, capacity: state.capacity, info: {} },
      );
    case 'heartbeat': {
      const pace = action.hasPace ? paces : undefined;
      const identity = { ...nameOf(action.worker), incarnation: lives[action.life] };
      return heartbeatWorker(store, identity, { pace, lastRead: '9999999999999-0' });
    }
    case 'stop':
      return drainWorker(store, { ...nameOf(action.worker), incarnation: lives[action.life] });
    case 'leave':
      return unregisterWorker(store, { ...nameOf(action.worker), incarnation: lives[action.life] });
    case 'drain':
      return withdrawWorker(store, nameOf(action.worker));
    case 'resume':
      return resumeWorker(store, nameOf(action.worker));
    case 'ask-to-sleep':
      return askWorker(store, nameOf(action.worker), 'sleep');
    case 'sweep':
    case 'sweep-again':
      return sweepWorkers(store, model, {
        intervalMs: action.do === 'sweep' ? 0 : longMs,
        missedSweeps: state.missedSweeps,
      });
    case 'admit-again':
    case 'lapse-reservation':
    case 'lapse-mark':
      return undefined;
  }
}

function envelopeOf(model: string, request: number) {
  const webhook = { url: 'http://127.0.0.1/', events: ['started', 'completed'] as const, progressIntervalMs: 1000 };
  return testEnvelope({
    id: requestIds[request]!,
    model,
    owner: owners[0]!,
    slots,
    bytes,
    timeoutMs: longMs,
    startTimeoutMs: longMs,
    // One of them has one, and an owner of its own in some worlds.
    ...(request === 0 ? { webhook } : {}),
  });
}

/** Makes it so that a request's time is over; nothing else reads these fields. */
function age({ store, name, history }: World, request: number, over: Over): void {
  const keys = store.keysOf(name);
  const id = requestIds[request]!;
  const log = history.logs[request]!;
  const fields = over === 'all' ? { startDeadlineMs: 1, deadlineMs: 1 } : { startDeadlineMs: 1 };
  void store.redis.hset(keys.request(id), fields);
  if (over === 'all' || !log.includes('started')) void store.redis.zadd(keys.deadlines, 'XX', 1, id);
}

type Write = Extract<Action, { do: 'write' | 'write-stale' }>;

function write(store: StoreConnection, { name: model, history }: World, state: State, action: Write): Promise<unknown> {
  const place = history.workers[action.worker]!;
  const leases = leasesOf(history.look, place);
  const held = (request: number): string => leases.get(request) ?? 'none';
  const all = state.requests.flatMap((_request, request) => whats.map((what): [number, What] => [request, what]));
  const isStale = action.do === 'write-stale';
  const count = history.writes[place]!.batch;
  const further = 1 + history.writes.reduce((sum, { batch }) => sum + batch, 0);
  const writes = (isStale ? all : action.writes).flatMap(([request, what]) => {
    const token = isStale ? staleToken(history, request, place) : held(request);
    return writesOf({ id: requestIds[request]!, token }, what, further);
  });
  const incarnation = lifeIn(history, place);
  return writeBatch(store, { model, workerId: workerIds[place]!, incarnation }, writes, { batch: count + 1 });
}

/** The life under which a worker stands in Redis. */
function lifeIn({ look }: History, place: number): string {
  const fields = (look[`worker:${workerIds[place]}`]?.[1] ?? []) as string[];
  return fields[fields.indexOf('incarnation') + 1] ?? lives[1];
}

/** The newest of a worker's that no lease has any more; one that never was, if there is none. */
function staleToken({ deliveries, look }: History, request: number, place: number): string {
  const lease = leasesOf(look, place).get(request);
  const isStale = (each: Delivery & { place: number }): boolean =>
    each.id === requestIds[request] && each.place === place && each.token !== lease;
  return deliveries.findLast(isStale)?.token ?? 'stale';
}

function writesOf(delivery: Delivery, what: What, further: number): RequestWrite[] {
  const data = Buffer.from('made');
  switch (what) {
    case 'progress':
      return [{ type: 'progress', delivery, progress: { index: 0, done: 1, total: 4 }, of: { done: 1, total: 4 } }];
    case 'checkpoint':
    case 'old-checkpoint':
      // Further than any before, or no further than the beginning.
      return [{ type: 'checkpoint', delivery, index: 0, done: what === 'checkpoint' ? further : 0, data }];
    case 'output':
      return splitOutput(delivery, { index: 0, contentType: 'text/plain', data, facts: {}, chunkBytes: 1000 });
    case 'release':
      return [{ type: 'release', delivery, slots }];
    case 'succeed':
      return [{ type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } }];
    case 'fail':
      return [{ type: 'end', delivery, end: { state: 'failed', error: { code: 'internal', message: 'no' } } }];
    case 'drop':
      return [{ type: 'end', delivery, end: { state: 'canceled' } }];
    case 'give-back':
    case 'give-back-failed':
      return [{ type: 'give-back', delivery, reason: what === 'give-back' ? 'worker_stopped' : 'engine_failed' }];
  }
}
