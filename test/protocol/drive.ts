/** Performs actions with the store's own functions, that is with the real scripts. */
import type { Dispatchable } from '@darkroom/core';
import {
  admitRequest,
  sendCommand,
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
  drainByOperator,
  writeBatch,
} from '@darkroom/store';
import { testEnvelope } from '@darkroom/testing';
import { beginHistory, type Call, type History, leasesOf } from './history.ts';
import { type Action, type Lease, type Deadline, type State, slots, type WriteKind, writeKinds } from './state.ts';
import { owners, requestIds, workerIds, type Worlds } from './world.ts';

export interface World {
  store: StoreConnection;
  /** The model id whose keys the world has. */
  name: string;
  history: History;
}

/** A command that was sent, and its pending reply. */
export interface Sent {
  call: Call;
  reply: Promise<unknown>;
}

/** A timeout that never expires in a test, ms. */
const longMs = 3_600_000;
export const lives = { 1: 'first', 2: 'second' } as const;
const paces = { costMs: { fast: 2, slow: 4 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 7 };

/** Creates a world in which only one sweep happened: the first sweep always counts, so later ones need not. */
export async function begin(store: StoreConnection, name: string, state: State, worlds: Worlds): Promise<History> {
  const history = beginHistory();
  await send({ store, name, history }, state, { do: 'sweep' })!.reply;
  return { ...history, snapshot: await worlds.read(baseOf({ store, name })) };
}

/** Reads the dispatchable state. */
export function view(world: World, { requests, workers }: State): Promise<Dispatchable> {
  const options = { maxWorkers: workers.length, maxRequests: requests.length };
  return readDispatchable(record(world, []), world.name, options);
}

export function baseOf({ store, name }: Pick<World, 'store' | 'name'>): string {
  return store.keysOf(name).base;
}

/**
 * Sends the commands of an action without awaiting them, so that many can be in flight; `undefined` if it needs no
 * script.
 */
export function send(world: World, state: State, action: Action): Sent | undefined {
  const { store, history } = world;
  const calls: Sent[] = [];
  const recording = record(world, calls);
  if (action.do === 'expire' && action.deadline !== 'none') age(world, action.request, action.deadline);
  if (action.do === 'dispatch' && action.passed) age(world, action.passed.request, action.passed.deadline);
  const earlier = earlierCall(world, state, action);
  const pending = earlier === undefined ? perform(recording, world, state, action) : replay(world, earlier, calls);
  // The caller handles the rejection of the reply.
  pending?.catch(() => {});
  if (pending === undefined) {
    const lapsed = action.do === 'lapse-mark' ? `drained:${workerIds[history.workers[action.worker]!]}` : 'reserved';
    void store.redis.del(`${baseOf(world)}:${lapsed}`);
  }
  return calls[0];
}

/** Resends a command, byte for byte. */
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

/** Returns a view of the store that uses only this world's keys and records the commands it sends. */
function record({ store, name }: World, calls: Sent[]): StoreConnection {
  const keys = store.keysOf(name);
  const commands = store.redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const get =
    (_target: object, command: string) =>
    (base: unknown, ...values: unknown[]) => {
      const reply = commands[command]!(base, ...values);
      calls.push({ call: [command, ...values], reply });
      // Reservations must not expire by themselves on a slow machine.
      if (command === 'dispatch/dispatch-requests') void store.redis.pexpire(keys.reserved, longMs);
      return reply;
    };
  const redis = { value: new Proxy({}, { get }) };
  return Object.create(store, {
    redis,
    keysOf: { value: () => keys },
    keysOfRequest: { value: () => keys },
    keysOfKnownRequest: { value: () => keys },
  }) as StoreConnection;
}

/**
 * Returns the earlier command that an action resends: the same submit, or a dispatch whose first reply came late or
 * never.
 */
function earlierCall({ history }: World, state: State, action: Action): Call | undefined {
  if (action.do === 'admit-again') return history.admissions.get(action.request);
  if (action.do !== 'dispatch') return undefined;
  const call = history.dispatches.get(planOf(history, action));
  return call && (action.own !== undefined || ownOf(call, state, history).length === 0) ? call : undefined;
}

/** Returns the running requests that a dispatch command leased. */
function ownOf([, id]: Call, { requests }: State, { snapshot, workers }: History): number[] {
  return requests.flatMap(({ worker }, request) => {
    const token = worker === null ? undefined : leasesOf(snapshot, workers[worker]!).get(request);
    return token?.startsWith(String(id)) === true ? [request] : [];
  });
}

/** Returns every dispatch whose leases still run, to be resent: its reply never came, and much has happened since. */
export function earlierDispatches(state: State, history: History): Action[] {
  return [...history.dispatches].flatMap(([plan, call]): Action[] => {
    const own = ownOf(call, state, history);
    const [leases, reserve] = JSON.parse(plan) as [Lease[], number | null];
    const named = leases.map((lease) => ({ ...lease, worker: history.workers.indexOf(lease.worker) }));
    if (own.length === 0 || reserve !== null) return [];
    return [{ do: 'dispatch', leases: named, own }];
  });
}

/** Identifies a dispatch by its leases, with worker indexes of this world. */
export function planOf({ workers }: History, { leases, reserve }: Extract<Action, { do: 'dispatch' }>): string {
  return JSON.stringify([leases.map((lease) => ({ ...lease, worker: workers[lease.worker] })), workers[reserve ?? -1]]);
}

function perform(store: StoreConnection, world: World, state: State, action: Action): Promise<unknown> | undefined {
  const { name: model, history } = world;
  const nameOf = (worker: number): { shard: string; workerId: string } => ({
    shard: model,
    workerId: workerIds[history.workers[worker]!]!,
  });
  switch (action.do) {
    case 'admit':
    case 'admit-other':
      return admitRequest(store, envelopeOf(model, action.request), {
        queueMaxLength: 100,
        unserved: 'accept',
        ownerMaxBytes: 1e9,
      });
    case 'cancel':
      return cancelRequest(store, requestIds[action.request]!);
    case 'expire':
      return expireRequests(store, model);
    case 'dispatch': {
      const leases = action.leases.map(({ worker, isExclusive, requests }) => {
        const { workerId } = nameOf(worker);
        return { workerId, isExclusive, requestIds: requests.map((request) => requestIds[request]!) };
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
      return drainByOperator(store, nameOf(action.worker));
    case 'resume':
      return resumeWorker(store, nameOf(action.worker));
    case 'ask-to-sleep':
      return sendCommand(store, nameOf(action.worker), { type: 'sleep' });
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
    timeoutMs: longMs,
    startTimeoutMs: longMs,
    // Only the first request has a webhook.
    ...(request === 0 ? { webhook } : {}),
  });
}

/** Makes a deadline of a request pass; no other script reads these fields. */
function age({ store, name, history }: World, request: number, deadline: Deadline): void {
  const keys = store.keysOf(name);
  const id = requestIds[request]!;
  const log = history.logs[request]!;
  const fields = deadline === 'all' ? { startDeadlineMs: 1, deadlineMs: 1 } : { startDeadlineMs: 1 };
  void store.redis.hset(keys.request(id), fields);
  if (deadline === 'all' || !log.includes('started')) void store.redis.zadd(keys.deadlines, 'XX', 1, id);
}

type Write = Extract<Action, { do: 'write' | 'write-stale' }>;

function write(store: StoreConnection, { name: model, history }: World, state: State, action: Write): Promise<unknown> {
  const place = history.workers[action.worker]!;
  const leases = leasesOf(history.snapshot, place);
  const tokenOf = (request: number): string => leases.get(request) ?? 'none';
  const all = state.requests.flatMap((_request, request) =>
    writeKinds.map((kind): [number, WriteKind] => [request, kind]),
  );
  const isStale = action.do === 'write-stale';
  const count = history.writes[place]!.batch;
  const maxDone = 1 + history.writes.reduce((sum, { batch }) => sum + batch, 0);
  const writes = (isStale ? all : action.writes).flatMap(([request, kind]) => {
    const token = isStale ? staleToken(history, request, place) : tokenOf(request);
    return writesOf({ id: requestIds[request]!, token }, kind, maxDone);
  });
  const incarnation = lifeIn(history, place);
  return writeBatch(store, { shard: model, workerId: workerIds[place]!, incarnation }, writes, { batch: count + 1 });
}

/** Returns the incarnation of a worker that is registered in Redis. */
function lifeIn({ snapshot }: History, place: number): string {
  const fields = (snapshot[`worker:${workerIds[place]}`]?.[1] ?? []) as string[];
  return fields[fields.indexOf('incarnation') + 1] ?? lives[1];
}

/** Returns the newest token of a worker that no lease has any more; an invalid token if there is none. */
function staleToken({ deliveries, snapshot }: History, request: number, place: number): string {
  const lease = leasesOf(snapshot, place).get(request);
  const isStale = (each: Delivery & { place: number }): boolean =>
    each.id === requestIds[request] && each.place === place && each.token !== lease;
  return deliveries.findLast(isStale)?.token ?? 'stale';
}

function writesOf(delivery: Delivery, kind: WriteKind, maxDone: number): RequestWrite[] {
  const data = Buffer.from('made');
  switch (kind) {
    case 'progress':
      return [{ type: 'progress', delivery, progress: { index: 0, done: 1, total: 4 }, of: { done: 1, total: 4 } }];
    case 'checkpoint':
    case 'old-checkpoint':
      // Further than any checkpoint before, or not advanced at all.
      return [{ type: 'checkpoint', delivery, index: 0, done: kind === 'checkpoint' ? maxDone : 0, data }];
    case 'output':
      return splitOutput(delivery, { index: 0, contentType: 'text/plain', data, facts: {}, chunkBytes: 999 });
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
      return [{ type: 'give-back', delivery, reason: kind === 'give-back' ? 'worker_stopped' : 'engine_failed' }];
  }
}
