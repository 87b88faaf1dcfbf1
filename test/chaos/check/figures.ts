/** What a run was: how much was asked, what went wrong, and how long it took to be right again. */
import { readFileSync } from 'node:fs';
import type { Entry, EntryOf } from '../history.ts';
import { isImpossible } from './check.ts';
import { endsOf, storiesOf } from './stories.ts';

type Fault = EntryOf<'fault'>;
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
  const [waits, runs] = recovery(entries, faults);
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
    ['read again before their time was over', `${count('late')}`],
    ['processes killed', `${sum(faults, killsOf)} by SIGKILL, ${sum(faults, stopsOf)} told to end by SIGTERM`],
    ['faults', counted(faults.map((fault) => (isImpossible(fault) ? `${fault.fault} not possible` : fault.fault)))],
    ['workers buried', `${said('buried a dead worker')}, of these alive ${said('taken for dead while alive')}`],
    ['deliveries that were recovered', `${said('recovered a request of a dead worker')}`],
    ['what a killed worker had waits again after', waits],
    ['and runs again, where another had room (aim: p99 5 s)', runs],
  ];
}

const sum = (faults: readonly Fault[], of: (fault: Fault) => number): number =>
  faults.reduce((total, fault) => total + of(fault), 0);

/** Processes that were killed by it. */
function killsOf({ fault, target }: Fault): number {
  // Twice: for its wrong clock, and for the right one.
  if (fault === 'clock') return 2;
  return Number(['kill', 'worker'].includes(fault) || target.startsWith('SIGKILL'));
}

function stopsOf({ fault, target }: Fault): number {
  if (fault === 'version') return 2;
  return Number(fault === 'stop' || target.startsWith('SIGTERM'));
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
 * another had room for all of it, and nothing was wrong with formers and that other either.
 */
function recovery(entries: readonly Entry[], faults: readonly Fault[]): [waits: string, runs: string] {
  const logs = new Map(storiesOf(entries).flatMap(({ requests, log }) => [...requests].map((id) => [id, log])));
  const kills = faults.filter(({ fault, hit = [] }) => fault === 'worker' && hit.length > 0);
  const isAlone = (kill: Fault, inTheWay: RegExp): boolean =>
    faults.every(({ fault, target, atMs }) => {
      if (atMs < kill.atMs - aroundMs.before || atMs > kill.atMs + aroundMs.after) return true;
      // A worker that is hit before had no room; one that is hit then had, and has none now.
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
  return [spread(secondsUntil('queued', waiting)), spread(secondsUntil('started', running))];
}

/** Of sorted seconds. */
function spread(seconds: readonly number[]): string {
  const at = (share: number): string =>
    seconds[Math.min(seconds.length - 1, Math.floor(share * seconds.length))]!.toFixed(1);
  return seconds.length === 0 ? 'none' : `p50 ${at(0.5)} s, p99 ${at(0.99)} s (${seconds.length})`;
}
