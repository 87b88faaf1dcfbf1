/** Compares workers in Redis with those of the model. */
import type { Same } from './differences.ts';
import { lives } from './drive.ts';
import type { History } from './history.ts';
import { freeOf, listOf, maxMissedOf, type State, type Worker } from './state.ts';
import { entriesOf, type Snapshot, pairsOf, requestIds, typeOf, workerIds } from './world.ts';

export function compareWorker(same: Same, snapshot: Snapshot, state: State, history: History, name: number): void {
  const place = history.workers[name]!;
  const id = workerIds[place]!;
  const worker = state.workers[name]!;
  const fields = pairsOf(snapshot, `worker:${id}`);
  const lists = ['loading', 'idle', 'busy', 'asleep', 'draining'].filter(
    (list) => id in pairsOf(snapshot, `workers:${list}`),
  );
  same(`${id} lists`, lists, worker ? [listOf(worker)] : []);
  same(`${id} has a heartbeat`, id in pairsOf(snapshot, 'workers:heard'), worker !== null);
  same(`${id} mark`, snapshot[`drained:${id}`]?.[1], state.marks[name] ? lives[state.marks[name]] : undefined);
  if (worker === null) return;
  same(`${id} life`, fields['incarnation'], lives[worker.life]);
  same(`${id} list`, fields['list'], listOf(worker));
  same(`${id} free`, Number(fields['free']), freeOf(worker));
  same(`${id} capacity`, Number(fields['capacity']), worker.capacity);
  same(
    `${id} flags`,
    [fields['loading'], fields['asleep'], fields['stopping'] ?? '0', Boolean(fields['throughput'])],
    [worker.isLoading ? '1' : '0', worker.isAsleep ? '1' : '0', worker.isStopping ? '1' : '0', worker.hasPace],
  );
  const lastSweep = Number(pairsOf(snapshot, 'workers:heard')[id]);
  same(`${id} sweeps missed`, Number(pairsOf(snapshot, 'swept')['count'] ?? 0) - lastSweep, worker.missed);
  if (listOf(worker) === 'busy')
    same(`${id} score among busy workers`, Number(pairsOf(snapshot, 'workers:busy')[id]), freeOf(worker));
  const leases = Object.entries(pairsOf(snapshot, `leases:${id}`)).map(
    ([lease, value]) => `${lease.split(' ')[0]} ${value}`,
  );
  const expected = worker.leases.flatMap((slots, request) =>
    slots === null ? [] : [`${requestIds[request]} ${slots} 128x128`],
  );
  same(`${id} leases`, leases.toSorted(), expected);
  const inbox = entriesOf(snapshot, `inbox:${id}`, 'message').map(([, message]) => message);
  same(`${id} inbox`, inbox.map(summarize), history.inboxes[place]);
  const given = history.deliveries.filter((delivery) => delivery.place === place).map(({ token }) => token);
  const tokens = inbox.flatMap((message) => [...message.matchAll(/"token":"([^"]+)"/g)].map(([, token = '']) => token));
  same(
    `${id} tokens in messages that no dispatch returned`,
    tokens.filter((token) => !given.includes(token)),
    [],
  );
}

function summarize(message: string): string {
  const type = typeOf(message);
  if (type !== 'run') return type;
  const run = [...message.matchAll(/"envelope":\{"id":"(?<id>[^"]+)"/g)].map(({ groups }) =>
    requestIds.indexOf(groups!['id']!),
  );
  return `run ${run.join(' ')}`;
}

/** Compares the sums over workers that take leases, the reservation and the sweep settings. */
export function comparePool(same: Same, snapshot: Snapshot, state: State, history: History): void {
  const { workers, reserved } = state;
  const open = workers.filter((worker): worker is Worker => worker?.mode === 'open');
  const capacity = pairsOf(snapshot, 'capacity');
  const sumOf = (field: string): number => Number(capacity[field] ?? 0);
  const measured = open.filter(({ hasPace }) => hasPace).length;
  same('capacity', ['workers', 'capacity', 'free', 'measured', 'remainingCost'].map(sumOf), [
    open.length,
    open.length * state.capacity,
    open.reduce((sum, worker) => sum + Math.max(0, freeOf(worker)), 0),
    measured,
    7 * measured,
  ]);
  same('capacity is deleted with the last worker', 'capacity' in snapshot, open.length > 0);
  same('reserved', snapshot['reserved']?.[1], reserved === null ? undefined : workerIds[history.workers[reserved]!]);
  same('maxMissed', Number(pairsOf(snapshot, 'swept')['maxMissed']), maxMissedOf(state));
}
