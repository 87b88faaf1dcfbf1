/** What the scripts made beside what the model says: a difference is a line. */
import type { Dispatchable } from '@darkroom/core';
import { comparePool, compareWorker } from './compare-workers.ts';
import { type Differences, expectSame, type Same } from './differences.ts';
import { bytes } from './drive.ts';
import { isAtRest } from './explore.ts';
import { endOf, type History, leasesOf } from './history.ts';
import { type Action, freeOf, isOffered, listOf, queueOf, type State } from './state.ts';
import { entriesOf, keyKinds, type Look, owners, pairsOf, requestIds, typeOf, workerIds } from './world.ts';

/** What a model keeps for ever: counts, entries that are cut off, and the account of each owner. */
const staying = new Set(['arrivals', 'dead', 'shares', 'swept', 'tally', 'webhooks']);

/** A reply as the model gives it. */
export function replyOf(action: Action, reply: unknown, workers: readonly number[]): unknown[] {
  const list = Array.isArray(reply) ? (reply as unknown[]) : [reply];
  // The scripts say more than that, which depends on costs and names.
  if (action.do.startsWith('admit') || action.do === 'cancel') {
    return list[0] === 'admitted' ? ['admitted', list[1], list[2] === 1] : list.slice(0, 1);
  }
  if (action.do === 'expire') return list.slice(1).map((id) => requestIds.indexOf(id as string));
  if (action.do === 'dispatch') return list.map((outcome) => (outcome as unknown[])[0]);
  if (!action.do.startsWith('sweep')) return list;
  const buried = list.slice(1).map((each) => workers.indexOf(workerIds.indexOf((each as string[])[0]!)));
  return buried.toSorted((one, other) => one - other);
}

/** All of a world beside a state of the model and what was said on the way to it. */
export function compare(look: Look, state: State, history: History): Differences {
  const differences: Differences = [];
  const same = (what: string, found: unknown, expected: unknown): void =>
    expectSame(differences, what, found, expected);
  for (const [request, { phase }] of state.requests.entries())
    if (phase !== 'none') compareRequest(same, look, state, history, request);
  compareQueue(same, look, state);
  for (const [worker] of state.workers.entries()) compareWorker(same, look, state, history, worker);
  comparePool(same, look, state, history);
  compareCounts(same, look, state, history);
  same('keys', Object.keys(look).toSorted(), keysIn(look, state, history));
  if (isAtRest(state))
    same(
      'keys that stay at rest',
      Object.keys(look).filter((name) => look[name]![0] === -1 && !staying.has(name)),
      [],
    );
  return differences;
}

/** What a former is shown beside what it may decide on. */
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
  const shown = workers.map(
    ({ id, isIdle, isAsleep, free }) => `${id} ${isIdle ? 'idle' : isAsleep ? 'asleep' : 'busy'} ${free}`,
  );
  expectSame(differences, 'workers that a former is shown', shown.toSorted(), offered.toSorted());
  const queue = offered.length > 0 ? queueOf(state).map((request) => requestIds[request]!) : [];
  expectSame(
    differences,
    'requests that a former is shown',
    requests.map(({ id }) => id),
    queue,
  );
  const reserved = state.reserved === null ? undefined : nameOf(state.reserved);
  expectSame(differences, 'who is shown as reserved', reservedWorkerId, reserved);
  return differences;
}

function compareRequest(same: Same, look: Look, state: State, history: History, request: number): void {
  const id = requestIds[request]!;
  const fields = pairsOf(look, `request:${id}`);
  const { phase, hasRun, attempts, hasAdvanced, hasOutput, isCanceling, worker } = state.requests[request]!;
  const isEnded = phase === 'ended';
  same(`${id} state`, fields['state'], isEnded ? endOf(history, request) : phase);
  if (!isEnded) {
    same(`${id} has run`, 'startedAtMs' in fields, hasRun);
    same(`${id} attempts`, Number(fields['attempts']), attempts);
    same(`${id} has advanced`, 'hasAdvanced' in fields, hasAdvanced);
    same(`${id} has its output`, 'output:0' in fields, hasOutput);
  }
  same(`${id} is to be dropped`, 'cancel' in fields, isCanceling);
  const place = worker === null ? undefined : history.workers[worker]!;
  same(`${id} worker`, fields['worker'], place === undefined ? undefined : workerIds[place]);
  const token = place === undefined ? undefined : leasesOf(look, place).get(request);
  same(`${id} token is that of the lease`, fields['token'], token);
  const log = history.logs[request]!;
  const events = entriesOf(look, `events:${id}`, 'body');
  // One that has only been queued has no log yet.
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
  for (const name of [`request:${id}`, `input:${id}`, `events:${id}`, `output:${id}:0`]) {
    const ttlMs = look[name]?.[0];
    if (ttlMs !== undefined) same(`${name} has a time to live`, ttlMs > 0, isEnded);
  }
}

function idsOf(requests: readonly number[]): string[] {
  return requests.map((request) => requestIds[request]!);
}

function compareQueue(same: Same, look: Look, state: State): void {
  const { requests } = state;
  const queue = queueOf(state);
  const fresh = queue.filter((request) => !requests[request]!.hasRun);
  const open = requests.flatMap(({ phase }, request) => (phase === 'queued' || phase === 'running' ? [request] : []));
  const members = (name: string): string[] => Object.keys(pairsOf(look, name));
  same('front', members('front'), idsOf(queue.filter((request) => requests[request]!.hasRun)));
  same('line', members(`line:${owners[0]}`), idsOf(fresh));
  same('places', members('places').length, fresh.length);
  same('waiting', members('waiting').toSorted(), idsOf(queue).toSorted());
  same('deadlines', members('deadlines').toSorted(), idsOf(open).toSorted());
  const shares = pairsOf(look, 'shares');
  same('lines', Number(shares['lines'] ?? 0), fresh.length > 0 ? 1 : 0);
  same('cost of what waits', Number(shares['cost'] ?? 0), queue.length);
  same('open', pairsOf(look, 'open'), open.length > 0 ? { [owners[0]!]: String(open.length) } : {});
  const kept = look[`bytes:${owners[0]}`];
  same('bytes of what is open', Number(pairsOf(look, `bytes:${owners[0]}`)['open'] ?? 0), open.length * bytes);
  if (kept) same('bytes have a time to live', kept[0] > 0, open.length === 0);
}

function compareCounts(same: Same, look: Look, { requests }: State, history: History): void {
  const counts: Record<string, number> = {};
  for (const [field, count] of Object.entries(pairsOf(look, 'tally'))) {
    const [what = '', which = '', bucket] = field.split(':');
    const name = what === 'end' && bucket !== 'ms' ? which : what;
    counts[name] = (counts[name] ?? 0) + Number(count);
  }
  const told = requests.flatMap((_request, request) => history.logs[request]!);
  for (const end of ['succeeded', 'failed', 'canceled', 'expired'])
    same(end, counts[end] ?? 0, told.filter((type) => type === end).length);
  const admitted = requests.filter(({ phase }) => phase !== 'none').length;
  same('requeues', counts['requeue'] ?? 0, told.filter((type) => type === 'queued').length - admitted);
  const failed = requests.flatMap((_request, request) =>
    endOf(history, request) === 'failed' ? [requestIds[request]!] : [],
  );
  same(
    'dead',
    entriesOf(look, 'dead', 'id')
      .map(([, id]) => id)
      .toSorted(),
    failed,
  );
  const asked = new Set(['started', 'succeeded', 'failed', 'canceled', 'expired']);
  const outbox = entriesOf(look, 'webhooks', 'body').map(([, body]) => typeOf(body));
  same(
    'webhooks',
    outbox,
    history.logs[0]!.filter((type) => asked.has(type)),
  );
}

/** All that may be there: what a state needs, and what stays of those that are over. */
function keysIn(look: Look, { requests, workers, marks, reserved }: State, history: History): string[] {
  const open = requests.flatMap(({ phase }, request) => (phase === 'queued' || phase === 'running' ? [request] : []));
  const kept = ({ name, kind, request, place }: (typeof keyNames)[number]): boolean => {
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
        // An older one may stand there too.
        return phase !== 'ended' && name in look;
      case 'previews':
      case 'promptless':
      case 'paused':
        return false;
      case 'worker':
        return worker != null;
      case 'inbox':
        return worker != null && name in look;
      case 'leases':
        return worker?.leases.some((lease) => lease !== null) ?? false;
      case 'drained':
        return (marks[history.workers.indexOf(place)] ?? null) !== null;
      case 'deadlines':
      case 'open':
        return open.length > 0;
      case 'room':
        return workers.some((each) => each?.mode === 'open');
      case 'reserved':
        return reserved !== null;
      default:
        // Members and entries are compared one by one; these stay, and are few.
        return name in look;
    }
  };
  return keyNames.filter(kept).map(({ name }) => name);
}

const keyNames = keyKinds
  .map(([name]) => {
    const [kind = '', subject = ''] = name.split(':');
    return { name, kind, request: requestIds.indexOf(subject), place: workerIds.indexOf(subject) };
  })
  .toSorted((one, other) => (one.name < other.name ? -1 : 1));
