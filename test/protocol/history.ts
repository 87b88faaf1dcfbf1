/** What was said in one world up to now: what its logs and inboxes must be, and what may come again. */
import type { Delivery } from '@darkroom/store';
import type { Outcome, Terminal } from './state.ts';
import { pairsOf, type Look, requestIds, workerIds } from './world.ts';

/** A command as it went to Redis, to be sent again byte for byte. */
export type Call = readonly [command: string, ...values: unknown[]];

export interface History {
  /** The model's workers by their places here: a state may have them the other way round. */
  workers: readonly number[];
  look: Look;
  /** By request: types of events in order. */
  logs: readonly string[][];
  /** By place: what waits to be read. */
  inboxes: readonly string[][];
  /** Every delivery there was, and to whom. */
  deliveries: readonly (Delivery & { place: number })[];
  /** By request. */
  admissions: ReadonlyMap<number, Call>;
  /** By what was decided on. */
  dispatches: ReadonlyMap<string, Call>;
  /** By place: the last batch of writes, and how many there were. */
  writes: readonly { last?: Call; batch: number; life?: number }[];
}

const terminals: readonly string[] = ['succeeded', 'failed', 'canceled', 'expired'] satisfies Terminal[];

export function beginHistory(): History {
  return {
    workers: workerIds.map((_id, place) => place),
    look: {},
    logs: requestIds.map(() => []),
    inboxes: workerIds.map(() => []),
    deliveries: [],
    admissions: new Map(),
    dispatches: new Map(),
    writes: workerIds.map(() => ({ batch: 0 })),
  };
}

/** With what an action said. */
export function tell(history: History, { events, messages }: Outcome): History {
  if (events.length + messages.length === 0) return history;
  const logs = history.logs.map((log, request) => [
    ...log,
    ...events.flatMap(([of, type]) => (of === request ? [type] : [])),
  ]);
  const inboxes = history.inboxes.map((inbox) => [...inbox]);
  for (const [worker, message] of messages) {
    const inbox = inboxes[history.workers[worker]!]!;
    if (message === null) inbox.length = 0;
    else inbox.push(message);
  }
  return { ...history, logs, inboxes };
}

/** The end that was told, if there was one. */
export function endOf({ logs }: History, request: number): string | undefined {
  return logs[request]!.find((type) => terminals.includes(type));
}

/** A worker's leases in Redis: request → token. */
export function leasesOf(look: Look, place: number): Map<number, string> {
  const leases = Object.keys(pairsOf(look, `leases:${workerIds[place]}`));
  return new Map(
    leases.map((lease) => {
      const [id = '', token = ''] = lease.split(' ');
      return [requestIds.indexOf(id), token];
    }),
  );
}
