/** What a run was: how much was asked, what went wrong, and how long it took to be right again. */
import { readFileSync } from 'node:fs';
import type { Entry } from './history.ts';
import { endsOf, storiesOf } from './stories.ts';

export type Figure = readonly [name: string, value: string];

/** Faults of the last so many seconds may still be at work, and one that comes this soon afterwards gets in the way, ms. */
const aroundMs = { before: 15_000, after: 5000 };

export function figuresOf(entries: readonly Entry[], logFile: string): Figure[] {
  const stories = storiesOf(entries);
  const count = (what: Entry['what']): number => entries.filter((entry) => entry.what === what).length;
  const accepted = stories.filter(({ requests }) => requests.size > 0);
  const submits = entries.filter(({ what }) => what === 'submit');
  const seconds = (submits.at(-1)!.atMs - submits[0]!.atMs) / 1000;
  const ends = counted(accepted.map((story) => endsOf(story)[0]?.state ?? 'no end'));
  const faults = entries.filter((entry) => entry.what === 'fault');
  const webhooks = entries.filter((entry) => entry.what === 'webhook');
  const log = readFileSync(logFile, 'utf8');
  const said = (text: string): number => log.split(text).length - 1;
  return [
    ['requests accepted', `${accepted.length} (${(accepted.length / seconds).toFixed(1)} a second)`],
    ['by model', counted(accepted.map(({ submit }) => submit.body.model))],
    ['ends', ends],
    ['events read', `${count('event')} by ${count('reader')} readers`],
    ['outputs compared', `${count('output')}`],
    [
      'webhooks',
      `${webhooks.filter(({ answer }) => answer < 300).length} taken, ${webhooks.filter(({ answer }) => answer >= 300).length} refused`,
    ],
    ['processes killed', `${faults.filter(({ fault, target }) => isKill(fault, target)).length}`],
    [
      'faults',
      counted(faults.map(({ fault, target }) => (target.startsWith('not possible') ? `${fault} not possible` : fault))),
    ],
    ['workers buried', `${said('buried a dead worker')}, of these alive ${said('taken for dead while alive')}`],
    ['deliveries that were recovered', `${said('recovered a request of a dead worker')}`],
    ['recovery from a killed worker', recovery(entries)],
  ];
}

/** How many processes were ended by it, whatever the signal. */
export function isKill(fault: string, target: string): boolean {
  return ['kill', 'worker', 'stop', 'version', 'redis', 'clock'].includes(fault) || target.startsWith('SIGKILL');
}

function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .toSorted(([, left], [, right]) => right - left)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

/**
 * From the kill of a worker until what it had waits again, where nothing else was wrong with janitors and Redis; and until it runs again, where
 * nothing was wrong with the other worker of pictures either.
 */
function recovery(entries: readonly Entry[]): string {
  const faults = entries.filter((entry) => entry.what === 'fault');
  const logs = new Map(storiesOf(entries).flatMap(({ requests, log }) => [...requests].map((id) => [id, log])));
  const secondsUntil = (type: string, of: string, inTheWay: RegExp): number[] =>
    faults
      .filter((kill) => kill.fault === 'worker' && kill.target.includes(of))
      .filter(({ atMs: killedAtMs, target: killed }) =>
        faults.every(({ fault, target, atMs }) => {
          if (atMs === killedAtMs || atMs < killedAtMs - aroundMs.before || atMs > killedAtMs + aroundMs.after)
            return true;
          return target !== killed && !inTheWay.test(`${fault} ${target}`);
        }),
      )
      .flatMap(({ atMs, hit = [] }) =>
        hit.flatMap((id) => {
          const next = logs.get(id)?.find((event) => event.type === type && event.facts.writtenAtMs > atMs);
          return next === undefined ? [] : (next.facts.writtenAtMs - atMs) / 1000;
        }),
      )
      .toSorted((left, right) => left - right);
  const waiting = secondsUntil('queued', '', /janitor|redis|disk/);
  const running = secondsUntil('started', 'painter', /janitor|former|redis|disk|painter/);
  return `waits again ${spread(waiting)}, runs again ${spread(running)}`;
}

/** Of sorted seconds. */
function spread(seconds: readonly number[]): string {
  const at = (share: number): string =>
    seconds[Math.min(seconds.length - 1, Math.floor(share * seconds.length))]!.toFixed(1);
  return seconds.length === 0 ? 'none' : `p50 ${at(0.5)} s, p99 ${at(0.99)} s (${seconds.length})`;
}
