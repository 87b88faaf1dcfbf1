/** The workers of a world beside those of the model. */
import type { Same } from './differences.ts';
import { lives } from './drive.ts';
import type { History } from './history.ts';
import { freeOf, listOf, patienceOf, type State, type Worker } from './state.ts';
import { entriesOf, type Look, pairsOf, requestIds, typeOf, workerIds } from './world.ts';

export function compareWorker(same: Same, look: Look, state: State, history: History, name: number): void {
  const place = history.workers[name]!;
  const id = workerIds[place]!;
  const worker = state.workers[name]!;
  const fields = pairsOf(look, `worker:${id}`);
  const lists = ['loading', 'idle', 'busy', 'asleep', 'draining'].filter(
    (list) => id in pairsOf(look, `workers:${list}`),
  );
  same(`${id} lists`, lists, worker ? [listOf(worker)] : []);
  same(`${id} is heard of`, id in pairsOf(look, 'workers:heard'), worker !== null);
  same(`${id} mark`, look[`drained:${id}`]?.[1], state.marks[name] ? lives[state.marks[name]] : undefined);
  if (worker === null) return;
  same(`${id} life`, fields['incarnation'], lives[worker.life]);
  same(`${id} list`, fields['list'], listOf(worker));
  same(`${id} free`, Number(fields['free']), freeOf(worker));
  same(`${id} capacity`, Number(fields['capacity']), worker.capacity);
  same(
    `${id} flags`,
    [fields['loading'], fields['asleep'], fields['stopping'] ?? '0', Boolean(fields['pace'])],
    [worker.isLoading ? '1' : '0', worker.isAsleep ? '1' : '0', worker.isStopping ? '1' : '0', worker.hasPace],
  );
  const heard = Number(pairsOf(look, 'workers:heard')[id]);
  same(`${id} sweeps missed`, Number(pairsOf(look, 'swept')['count'] ?? 0) - heard, worker.missed);
  if (listOf(worker) === 'busy')
    same(`${id} place among the busy`, Number(pairsOf(look, 'workers:busy')[id]), freeOf(worker));
  const leases = Object.entries(pairsOf(look, `leases:${id}`)).map(([lease, held]) => `${lease.split(' ')[0]} ${held}`);
  const expected = worker.leases.flatMap((held, request) =>
    held === null ? [] : [`${requestIds[request]} ${held} 128x128`],
  );
  same(`${id} leases`, leases.toSorted(), expected);
  const inbox = entriesOf(look, `inbox:${id}`, 'message').map(([, message]) => message);
  same(`${id} inbox`, inbox.map(inWords), history.inboxes[place]);
  const given = history.deliveries.filter((delivery) => delivery.place === place).map(({ token }) => token);
  const strange = inbox.flatMap((message) =>
    [...message.matchAll(/"token":"([^"]+)"/g)].map(([, token = '']) => token),
  );
  same(
    `${id} tokens that nobody was told of`,
    strange.filter((token) => !given.includes(token)),
    [],
  );
}

function inWords(message: string): string {
  const type = typeOf(message);
  if (type !== 'run') return type;
  const run = [...message.matchAll(/"envelope":\{"id":"(?<id>[^"]+)"/g)].map(({ groups }) =>
    requestIds.indexOf(groups!['id']!),
  );
  return `run ${run.join(' ')}`;
}

/** What is summed up over the workers that take leases, and who is kept for one alone. */
export function comparePool(same: Same, look: Look, state: State, history: History): void {
  const { workers, reserved } = state;
  const open = workers.filter((worker): worker is Worker => worker?.mode === 'open');
  const room = pairsOf(look, 'room');
  const sumOf = (field: string): number => Number(room[field] ?? 0);
  const paced = open.filter(({ hasPace }) => hasPace).length;
  same('room', ['workers', 'capacity', 'free', 'paced', 'remainingCost'].map(sumOf), [
    open.length,
    open.length * state.capacity,
    open.reduce((sum, worker) => sum + Math.max(0, freeOf(worker)), 0),
    paced,
    7 * paced,
  ]);
  same('room goes with the last worker', 'room' in look, open.length > 0);
  same('reserved', look['reserved']?.[1], reserved === null ? undefined : workerIds[history.workers[reserved]!]);
  same('patience', Number(pairsOf(look, 'swept')['patience']), patienceOf(state));
}
