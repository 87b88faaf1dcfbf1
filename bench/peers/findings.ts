/** Rounds of all peers as tables and panels. */
import type { Bar, Panel } from '../plot.ts';
import type { Table } from '../publish.ts';
import { median, quantile } from '../report.ts';
import type { Peer } from './peer.ts';
import { type Measured, type Round, stepsLeft } from './scenes.ts';

type Rounds = ReadonlyMap<Peer, readonly Round[]>;
/** One figure of a round. */
type Figure = (round: Round) => number | undefined;

const of =
  (scene: string, read: (measured: Measured) => number): Figure =>
  ({ measured }) =>
    read(measured.get(scene)!);
const rate = (scene: string): Figure => of(scene, (measured) => measured.rate);
const p50 = (scene: string): Figure => of(scene, (measured) => measured.p50);
const p99 = (scene: string): Figure => of(scene, (measured) => measured.p99);
const p50Ms = (scene: string): Figure => of(scene, (measured) => 1000 * measured.p50);
const cpu = (scene: string): Figure => of(scene, ({ cpuMs }) => cpuMs);
const wholeS = (scene: string): Figure => of(scene, ({ rate: each, seconds }) => seconds.length / each);
const afterLeaving: Figure = ({ stepsAfterLeaving }) => stepsAfterLeaving;

export function tablesOf(rounds: Rounds): Table[] {
  const peers = [...rounds.keys()];
  const row = (name: string, figure: Figure): string[] => [
    name,
    ...peers.map((peer) => withSpread(valuesOf(rounds.get(peer)!, figure))),
  ];
  const tail = (name: string, scene: string): string[] => [
    name,
    ...peers.map((peer) =>
      threeDigits(
        quantile(
          rounds.get(peer)!.flatMap(({ measured }) => measured.get(scene)!.seconds),
          0.99,
        ),
      ),
    ),
  ];
  const rows = [
    row('idle: p50, ms', p50Ms('idle')),
    tail('idle: p99 of all rounds, s', 'idle'),
    row('tiny: p50, ms', p50Ms('tiny')),
    tail('tiny: p99 of all rounds, s', 'tiny'),
    row('uniform: pictures/s', rate('uniform')),
    row('uniform: p50, s', p50('uniform')),
    tail('uniform: p99 of all rounds, s', 'uniform'),
    row('mixed: pictures/s', rate('mixed')),
    row('mixed: p50, s', p50('mixed')),
    tail('mixed: p99 of all rounds, s', 'mixed'),
    row('burst: all 200 done, s', wholeS('burst')),
    row('burst: p50, s', p50('burst')),
    row('CPU of a picture, idle, ms', cpu('idle')),
    row('CPU of a picture, uniform, ms', cpu('uniform')),
    row('CPU of a picture, mixed, ms', cpu('mixed')),
    row(`steps after clients left, of ${stepsLeft}`, afterLeaving),
  ];
  return [{ title: 'Measured', columns: ['', ...peers.map(({ name }) => name)], rows }, ...ratiosOf(rounds)];
}

interface Ratio {
  name: string;
  figure: Figure;
  better: 'high' | 'low';
  aim: string;
  /** Whom it is compared to: the best of these. */
  among?: Peer['batches'];
}

const ratios: readonly Ratio[] = [
  { name: 'idle: p50', figure: p50('idle'), better: 'low', aim: '≤ 1.00' },
  { name: 'tiny: p50', figure: p50('tiny'), better: 'low', aim: '≤ 1.05' },
  { name: 'uniform: pictures/s', figure: rate('uniform'), better: 'high', aim: '≥ 1.02' },
  { name: 'mixed: pictures/s, who groups', figure: rate('mixed'), better: 'high', aim: '≥ 1.40', among: 'groups' },
  { name: 'mixed: pictures/s, rows by hand', figure: rate('mixed'), better: 'high', aim: '≥ 1.05', among: 'rows' },
  { name: 'mixed: p99, rows by hand', figure: p99('mixed'), better: 'low', aim: '≤ 1.00', among: 'rows' },
  { name: 'burst: all 200 done', figure: wholeS('burst'), better: 'low', aim: '≤ 1.00' },
  { name: 'CPU of a picture, uniform', figure: cpu('uniform'), better: 'low', aim: '' },
  { name: 'CPU of a picture, mixed', figure: cpu('mixed'), better: 'low', aim: '' },
];

/** Darkroom's figures over those of the best server, round by round. */
function ratiosOf(rounds: Rounds): Table[] {
  const [[own, ownRounds] = [], ...others] = [...rounds];
  if (own?.batches !== 'joining rows' || ownRounds === undefined) return [];
  const rows = ratios.flatMap(({ name, figure, better, aim, among }) => {
    const candidates = others.filter(([{ batches }]) => batches !== 'joining rows' && batches === (among ?? batches));
    const middle = (each: readonly Round[]): number => median(valuesOf(each, figure)) * (better === 'high' ? -1 : 1);
    const [best] = candidates.toSorted(([, left], [, right]) => middle(left) - middle(right));
    if (best === undefined) return [];
    const theirs = valuesOf(best[1], figure);
    return [[name, best[0].name, withSpread(valuesOf(ownRounds, figure).map((value, at) => value / theirs[at]!)), aim]];
  });
  return rows.length === 0
    ? []
    : [{ title: 'Darkroom ÷ the best server', columns: ['', 'best', 'ratio', 'aim'], rows }];
}

function scenesOf(names: readonly string[], figure: (scene: string) => Figure) {
  return names.map((name) => [name, figure(name)] as const);
}

export function panelsOf(rounds: Rounds): Panel[] {
  const panel = (title: string, groups: readonly (readonly [string, Figure])[]): Panel => ({
    kind: 'bars',
    title,
    groups: groups.map(([name]) => name),
    series: [...rounds].map(([{ name }, each]) => ({
      name,
      bars: groups.map(([, figure]) => barOf(valuesOf(each, figure))),
    })),
  });
  return [
    panel('Pictures a second (more is better)', scenesOf(['uniform', 'mixed', 'burst'], rate)),
    panel('One at a time: p50, ms (less is better)', scenesOf(['idle', 'tiny'], p50Ms)),
    panel('p99, s (less is better)', scenesOf(['uniform', 'mixed', 'burst'], p99)),
    panel('Steps after clients left (less is better)', [[`of ${stepsLeft} that were left`, afterLeaving]]),
  ];
}

function valuesOf(rounds: readonly Round[], figure: Figure): number[] {
  return rounds.map(figure).filter((value) => value !== undefined);
}

function barOf(values: readonly number[]): Bar | undefined {
  if (values.length === 0) return undefined;
  const value = median(values);
  return values.length === 1 ? { value } : { value, spread: [Math.min(...values), Math.max(...values)] };
}

function withSpread(values: readonly number[]): string {
  const bar = barOf(values);
  if (bar === undefined) return '–';
  return bar.spread === undefined
    ? threeDigits(bar.value)
    : `${threeDigits(bar.value)} (${bar.spread.map(threeDigits).join('–')})`;
}

function threeDigits(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3, minimumSignificantDigits: value < 1 ? 2 : 3 });
}
