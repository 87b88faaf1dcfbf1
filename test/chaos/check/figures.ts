/** Statistics of a run: requests, faults, and recovery times. */
import { readFileSync } from 'node:fs';
import type { Entry, EntryOf } from '../history.ts';
import { isImpossible } from './check.ts';
import { endsOf, storiesOf } from './stories.ts';

type Fault = EntryOf<'fault'>;
export type Figure = readonly [name: string, value: string];

/** A fault this long before or after a worker's kill may affect its recovery, ms. */
const interferenceMs = { before: 15_000, after: 5000 };

export function figuresOf(entries: readonly Entry[], logFile: string): Figure[] {
  const stories = storiesOf(entries);
  const count = (what: Entry['what']): number => entries.filter((entry) => entry.what === what).length;
  const accepted = stories.filter(({ requests }) => requests.size > 0);
  const submits = entries.filter(({ what }) => what === 'submit');
  const seconds = (submits.at(-1)!.atMs - submits[0]!.atMs) / 1000;
  const ends = formatCounts(accepted.map((story) => endsOf(story)[0]?.state ?? 'no end'));
  const faults = entries.filter((entry) => entry.what === 'fault');
  const [waits, runs] = recovery(entries, faults);
  const webhooks = entries.filter((entry) => entry.what === 'webhook');
  const log = readFileSync(logFile, 'utf8');
  const countInLog = (text: string): number => log.split(text).length - 1;
  return [
    ['requests accepted', `${accepted.length} (${(accepted.length / seconds).toFixed(1)} a second)`],
    ['by model', formatCounts(accepted.map(({ submit }) => submit.body.model))],
    ['ends', ends],
    ['events read', `${count('event')} by ${count('reader')} readers`],
    ['outputs compared', `${count('output')}`],
    [
      'webhooks',
      `${webhooks.filter(({ answer }) => answer < 300).length} taken, ${webhooks.filter(({ answer }) => answer >= 300).length} refused`,
    ],
    ['attacks answered', `${count('attack')}`],
    ['read again shortly before expiry', `${count('late')}`],
    ['processes killed', `${sum(faults, killsOf)} by SIGKILL, ${sum(faults, stopsOf)} stopped by SIGTERM`],
    [
      'faults',
      formatCounts(faults.map((fault) => (isImpossible(fault) ? `${fault.fault} not possible` : fault.fault))),
    ],
    [
      'workers reaped',
      `${countInLog('reaped a dead worker')}, of these still alive ${countInLog('reaped while alive')}`,
    ],
    ['requests requeued after a worker was lost', `${countInLog('recovered a request of a dead worker')}`],
    ['time from worker kill to requeue', waits],
    ['time to restart where another worker had capacity (target: p99 5 s)', runs],
  ];
}

const sum = (faults: readonly Fault[], of: (fault: Fault) => number): number =>
  faults.reduce((total, fault) => total + of(fault), 0);

/** Returns how many processes a fault killed. */
function killsOf({ fault, target }: Fault): number {
  // Killed twice: to start with the wrong clock, and with the right one again.
  if (fault === 'clock') return 2;
  return Number(['kill', 'worker'].includes(fault) || target.startsWith('SIGKILL'));
}

function stopsOf({ fault, target }: Fault): number {
  if (fault === 'version') return 2;
  return Number(fault === 'stop' || target.startsWith('SIGTERM'));
}

function formatCounts(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .toSorted(([, left], [, right]) => right - left)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

/**
 * Measures recovery after the kill of a worker: until its requests are requeued (kills without other faults of Redis or
 * janitors), and until they run again (also without faults of batch-formers, and with capacity on another worker).
 */
function recovery(entries: readonly Entry[], faults: readonly Fault[]): [waits: string, runs: string] {
  const logs = new Map(storiesOf(entries).flatMap(({ requests, log }) => [...requests].map((id) => [id, log])));
  const kills = faults.filter(({ fault, hit = [] }) => fault === 'worker' && hit.length > 0);
  const isAlone = (kill: Fault, inTheWay: RegExp): boolean =>
    faults.every(({ fault, target, atMs }) => {
      if (atMs < kill.atMs - interferenceMs.before || atMs > kill.atMs + interferenceMs.after) return true;
      // A worker with capacity that is hit after the kill cannot take the requests.
      const isRoom = atMs > kill.atMs && kill.room!.some((name) => target.includes(name));
      return !isRoom && !inTheWay.test(`${fault} ${target}`);
    });
  const secondsUntil = (type: string, of: readonly Fault[]): number[] =>
    of
      .flatMap(({ atMs, hit = [] }) =>
        hit.flatMap((id) => {
          const next = logs.get(id)?.find((event) => event.type === type && event.facts.writtenAtMs > atMs);
          return next === undefined ? [] : (next.facts.writtenAtMs - atMs) / 1000;
        }),
      )
      .toSorted((left, right) => left - right);
  const waiting = kills.filter((kill) => isAlone(kill, /janitor|redis|disk/));
  const running = kills.filter((kill) => kill.room!.length > 0 && isAlone(kill, /janitor|former|redis|disk/));
  return [formatPercentiles(secondsUntil('queued', waiting)), formatPercentiles(secondsUntil('started', running))];
}

/** Formats p50 and p99 of sorted durations, s. */
function formatPercentiles(seconds: readonly number[]): string {
  const at = (share: number): string =>
    seconds[Math.min(seconds.length - 1, Math.floor(share * seconds.length))]!.toFixed(1);
  return seconds.length === 0 ? 'none' : `p50 ${at(0.5)} s, p99 ${at(0.99)} s (${seconds.length})`;
}
