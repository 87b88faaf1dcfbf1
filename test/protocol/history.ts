/** History of one world (`world.ts`): the expected event logs and inboxes, and commands that may be resent. */
import type { Delivery } from '@darkroom/store';
import type { Outcome, Terminal } from './state.ts';
import { pairsOf, type Snapshot, requestIds, workerIds } from './world.ts';

/** A command as it was sent to Redis, to be resent byte for byte. */
export type Call = readonly [command: string, ...values: unknown[]];

export interface History {
  /** By worker of the model: its index in `workerIds`, called `place`. A canonical state may swap the two workers. */
  workers: readonly number[];
  snapshot: Snapshot;
  /** By request: the types of its events, in order. */
  logs: readonly string[][];
  /** By `place` of the worker: its unread messages. */
  inboxes: readonly string[][];
  /** All deliveries so far, with the `place` of their worker. */
  deliveries: readonly (Delivery & { place: number })[];
  /** By request: the command that admitted it. */
  admissions: ReadonlyMap<number, Call>;
  /** By plan (`planOf`): the last command that dispatched the plan. */
  dispatches: ReadonlyMap<string, Call>;
  /** By `place` of the worker: the last batch of writes, and the number of batches. */
  writes: readonly { last?: Call; batch: number; life?: number }[];
}

const terminals: readonly string[] = ['succeeded', 'failed', 'canceled', 'expired'] satisfies Terminal[];

export function beginHistory(): History {
  return {
    workers: workerIds.map((_id, place) => place),
    snapshot: {},
    logs: requestIds.map(() => []),
    inboxes: workerIds.map(() => []),
    deliveries: [],
    admissions: new Map(),
    dispatches: new Map(),
    writes: workerIds.map(() => ({ batch: 0 })),
  };
}

/** Returns the history with the events and messages of an outcome added. */
export function addOutcome(history: History, { events, messages }: Outcome): History {
  if (events.length + messages.length === 0) return history;
  const logs = history.logs.map((log, request) => [
    ...log,
    ...events.flatMap(([eventRequest, type]) => (eventRequest === request ? [type] : [])),
  ]);
  const inboxes = history.inboxes.map((inbox) => [...inbox]);
  for (const [worker, message] of messages) {
    const inbox = inboxes[history.workers[worker]!]!;
    if (message === null) inbox.length = 0;
    else inbox.push(message);
  }
  return { ...history, logs, inboxes };
}

/** Returns the terminal event of a request, if there is one. */
export function endOf({ logs }: History, request: number): string | undefined {
  return logs[request]!.find((type) => terminals.includes(type));
}

/** Returns a worker's leases in Redis, as a map from request to token. */
export function leasesOf(snapshot: Snapshot, place: number): Map<number, string> {
  const leases = Object.keys(pairsOf(snapshot, `leases:${workerIds[place]}`));
  return new Map(
    leases.map((lease) => {
      const [id = '', token = ''] = lease.split(' ');
      return [requestIds.indexOf(id), token];
    }),
  );
}
