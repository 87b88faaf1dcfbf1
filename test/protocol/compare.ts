/** Compares Redis after the scripts ran with the state of the model; returns one line per difference. */
import type { Dispatchable } from '@darkroom/core';
import { comparePool, compareWorker } from './compare-workers.ts';
import { type Differences, expectSame, type Same } from './differences.ts';
import { isAtRest } from './explore.ts';
import { endOf, type History, leasesOf } from './history.ts';
import { type Action, freeOf, isOffered, listOf, queueOf, type State } from './state.ts';
import { entriesOf, keyKinds, type Snapshot, owners, pairsOf, requestIds, typeOf, workerIds } from './world.ts';

/** Keys that a model retains for ever: counters, capped streams, and the byte counters of owners. */
const staying = new Set(['arrivals', 'dead', 'shares', 'swept', 'counters', 'webhooks']);

/** Converts the reply of a script to the form of the model. */
export function replyOf(action: Action, reply: unknown, workers: readonly number[]): unknown[] {
  const list = Array.isArray(reply) ? (reply as unknown[]) : [reply];
  // The scripts also return costs and names, which the model does not know.
  if (action.do.startsWith('admit') || action.do === 'cancel') {
    return list[0] === 'admitted' ? ['admitted', list[1], list[2] === 1] : list.slice(0, 1);
  }
  if (action.do === 'expire') return list.slice(1).map((id) => requestIds.indexOf(id as string));
  if (action.do === 'dispatch') return list.map((outcome) => (outcome as unknown[])[0]);
  if (!action.do.startsWith('sweep')) return list;
  // The first two values are numbers.
  const reaped = list.slice(2).map((each) => workers.indexOf(workerIds.indexOf((each as string[])[0]!)));
  return reaped.toSorted((one, other) => one - other);
}

/** Compares all keys of a world with a state of the model, and logs and inboxes with the world's history. */
export function compare(snapshot: Snapshot, state: State, history: History): Differences {
  const differences: Differences = [];
  const same = (label: string, found: unknown, expected: unknown): void =>
    expectSame(differences, label, found, expected);
  for (const [request, { phase }] of state.requests.entries())
    if (phase !== 'none') compareRequest(same, snapshot, state, history, request);
  compareQueue(same, snapshot, state);
  for (const [worker] of state.workers.entries()) compareWorker(same, snapshot, state, history, worker);
  comparePool(same, snapshot, state, history);
  compareCounts(same, snapshot, state, history);
  same('keys', Object.keys(snapshot).toSorted(), keysIn(snapshot, state, history));
  if (isAtRest(state))
    same(
      'keys without a TTL when idle',
      Object.keys(snapshot).filter((name) => snapshot[name]![0] === -1 && !staying.has(name)),
      [],
    );
  return differences;
}

/** Compares the dispatchable state with the model. */
export function compareView(
  { workers, requests, reservedWorkerId }: Dispatchable,
  state: State,
  history: History,
): Differences {
  const differences: Differences = [];
  const nameOf = (worker: number): string => workerIds[history.workers[worker]!]!;
  const offered = state.workers.flatMap((worker, name) =>
    worker && isOffered(state, worker) ? [`${nameOf(name)} ${listOf(worker)} ${freeOf(worker)}`] : [],
  );
  const found = workers.map(
    ({ id, isIdle, isAsleep, free }) => `${id} ${isIdle ? 'idle' : isAsleep ? 'asleep' : 'busy'} ${free}`,
  );
  expectSame(differences, 'dispatchable workers', found.toSorted(), offered.toSorted());
  const queue = offered.length > 0 ? queueOf(state).map((request) => requestIds[request]!) : [];
  expectSame(
    differences,
    'dispatchable requests',
    requests.map(({ id }) => id),
    queue,
  );
  const reserved = state.reserved === null ? undefined : nameOf(state.reserved);
  expectSame(differences, 'reserved worker in the dispatchable state', reservedWorkerId, reserved);
  return differences;
}

function compareRequest(same: Same, snapshot: Snapshot, state: State, history: History, request: number): void {
  const id = requestIds[request]!;
  const fields = pairsOf(snapshot, `request:${id}`);
  const { phase, hasRun, attempts, hasAdvanced, hasOutput, isCanceling, worker } = state.requests[request]!;
  const isEnded = phase === 'ended';
  same(`${id} state`, fields['state'], isEnded ? endOf(history, request) : phase);
  if (!isEnded) {
    same(`${id} has run`, 'startedAtMs' in fields, hasRun);
    same(`${id} attempts`, Number(fields['attempts']), attempts);
    same(`${id} has advanced`, 'hasAdvanced' in fields, hasAdvanced);
    same(`${id} has its output`, 'output:0' in fields, hasOutput);
  }
  same(`${id} is being canceled`, 'cancel' in fields, isCanceling);
  const place = worker === null ? undefined : history.workers[worker]!;
  same(`${id} worker`, fields['worker'], place === undefined ? undefined : workerIds[place]);
  const token = place === undefined ? undefined : leasesOf(snapshot, place).get(request);
  same(`${id} token is that of the lease`, fields['token'], token);
  const log = history.logs[request]!;
  const events = entriesOf(snapshot, `events:${id}`, 'body');
  // A request that was only queued has no log yet.
  same(
    `${id} log`,
    events.map(([, body]) => typeOf(body)),
    log.length === 1 ? [] : log,
  );
  same(
    `${id} event ids`,
    events.map(([entry]) => entry),
    log.length === 1 ? [] : log.map((_type, index) => `${index + 1}-0`),
  );
  same(`${id} sequence`, Number(fields['sequence']), log.length);
  if (isEnded) {
    const listedUntil = pairsOf(snapshot, `expiring:${owners[0]}`)[id];
    same(`${id} is listed until it expires`, listedUntil, fields['expiresAtMs']);
  }
  for (const name of [`request:${id}`, `input:${id}`, `events:${id}`, `output:${id}:0`]) {
    const ttlMs = snapshot[name]?.[0];
    if (ttlMs !== undefined) same(`${name} has a TTL`, ttlMs > 0, isEnded);
  }
}

function idsOf(requests: readonly number[]): string[] {
  return requests.map((request) => requestIds[request]!);
}

function compareQueue(same: Same, snapshot: Snapshot, state: State): void {
  const { requests } = state;
  const queue = queueOf(state);
  const fresh = queue.filter((request) => !requests[request]!.hasRun);
  const open = requests.flatMap(({ phase }, request) => (phase === 'queued' || phase === 'running' ? [request] : []));
  const members = (name: string): string[] => Object.keys(pairsOf(snapshot, name));
  same('front', members('front'), idsOf(queue.filter((request) => requests[request]!.hasRun)));
  same('queued', members(`queued:${owners[0]}`), idsOf(fresh));
  same('places', members('places').length, fresh.length);
  same('waiting', members('waiting').toSorted(), idsOf(queue).toSorted());
  same('deadlines', members('deadlines').toSorted(), idsOf(open).toSorted());
  const shares = pairsOf(snapshot, 'shares');
  same('owners', Number(shares['owners'] ?? 0), fresh.length > 0 ? 1 : 0);
  same('cost of the queue', Number(shares['cost'] ?? 0), queue.length);
  same('open', pairsOf(snapshot, 'open'), open.length > 0 ? { [owners[0]!]: String(open.length) } : {});
  const admitted = requests.flatMap(({ phase }, request) => (phase === 'none' ? [] : [request]));
  for (const name of [`listed:${owners[0]}`, `expiring:${owners[0]}`]) {
    same(name, members(name).toSorted(), idsOf(admitted));
    if (admitted.length > 0) same(`${name} has a TTL`, snapshot[name]![0] > 0, true);
  }
  const kept = snapshot[`bytes:${owners[0]}`];
  const total = Number(pairsOf(snapshot, `bytes:${owners[0]}`)['total'] ?? 0);
  same('stored bytes', total, storedBytes(snapshot));
  if (kept) same('bytes have a TTL', kept[0] > 0, open.length === 0);
}

/** Returns the bytes that the requests hold: 6,000 each, envelopes, webhooks, checkpoints and outputs. */
function storedBytes(snapshot: Snapshot): number {
  const lengthOf = (name: string): number => ((snapshot[name]?.[1] ?? '') as string).length;
  const ofRequests = requestIds.map((id) => {
    const { info: _info, ...chunks } = pairsOf(snapshot, `output:${id}:0`);
    const outputBytes = Object.values(chunks).reduce((sum, chunk) => sum + chunk.length, 0);
    const request = pairsOf(snapshot, `request:${id}`);
    const ownBytes = request['state'] === undefined ? 0 : 6000 + (request['webhook'] ?? '').length;
    return ownBytes + lengthOf(`input:${id}`) + lengthOf(`checkpoint:${id}:0`) + outputBytes;
  });
  return ofRequests.reduce((sum, bytes) => sum + bytes, 0);
}

function compareCounts(same: Same, snapshot: Snapshot, { requests }: State, history: History): void {
  const counts: Record<string, number> = {};
  for (const [field, count] of Object.entries(pairsOf(snapshot, 'counters'))) {
    const [group = '', state = '', bucket] = field.split(':');
    const name = group === 'end' && bucket !== 'ms' ? state : group;
    counts[name] = (counts[name] ?? 0) + Number(count);
  }
  const logged = requests.flatMap((_request, request) => history.logs[request]!);
  for (const end of ['succeeded', 'failed', 'canceled', 'expired'])
    same(end, counts[end] ?? 0, logged.filter((type) => type === end).length);
  const admitted = requests.filter(({ phase }) => phase !== 'none').length;
  same('requeues', counts['requeue'] ?? 0, logged.filter((type) => type === 'queued').length - admitted);
  const failed = requests.flatMap((_request, request) =>
    endOf(history, request) === 'failed' ? [requestIds[request]!] : [],
  );
  same(
    'dead',
    entriesOf(snapshot, 'dead', 'id')
      .map(([, id]) => id)
      .toSorted(),
    failed,
  );
  const subscribed = new Set(['started', 'succeeded', 'failed', 'canceled', 'expired']);
  const outbox = entriesOf(snapshot, 'webhooks', 'body').map(([, body]) => typeOf(body));
  same(
    'webhooks',
    outbox,
    history.logs[0]!.filter((type) => subscribed.has(type)),
  );
}

/**
 * Returns the keys that may exist: those that the state requires, and those that ended requests and reaped workers
 * leave.
 */
function keysIn(snapshot: Snapshot, { requests, workers, marks, reserved }: State, history: History): string[] {
  const open = requests.flatMap(({ phase }, request) => (phase === 'queued' || phase === 'running' ? [request] : []));
  const isExpected = ({ name, kind, request, place }: (typeof keyNames)[number]): boolean => {
    const phase = requests[request]?.phase ?? 'none';
    const log = history.logs[request] ?? [];
    const worker = workers[history.workers.indexOf(place)];
    switch (kind) {
      case 'request':
      case 'input':
        return phase !== 'none';
      case 'events':
        return log.length > 1;
      case 'output':
        return log.includes('output');
      case 'checkpoint':
        // The checkpoint of an earlier attempt may exist, too.
        return phase !== 'ended' && name in snapshot;
      case 'previews':
      case 'promptless':
      case 'paused':
        return false;
      case 'worker':
        return worker != null;
      case 'inbox':
        return worker != null && name in snapshot;
      case 'leases':
        return worker?.leases.some((lease) => lease !== null) ?? false;
      case 'drained':
        return (marks[history.workers.indexOf(place)] ?? null) !== null;
      case 'deadlines':
      case 'open':
        return open.length > 0;
      case 'capacity':
        return workers.some((each) => each?.mode === 'open');
      case 'reserved':
        return reserved !== null;
      default:
        // Their members and entries are compared one by one.
        return name in snapshot;
    }
  };
  return keyNames.filter(isExpected).map(({ name }) => name);
}

const keyNames = keyKinds
  .map(([name]) => {
    const [kind = '', subject = ''] = name.split(':');
    return { name, kind, request: requestIds.indexOf(subject), place: workerIds.indexOf(subject) };
  })
  .toSorted((one, other) => (one.name < other.name ? -1 : 1));
