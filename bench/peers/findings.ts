/** Rounds of all peers as tables. */
import { median, middle, quantile } from '../report.ts';
import type { Table } from '../table.ts';
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

const alone = ['idle', 'tiny'];
const crowds = ['uniform', 'mixed', 'burst'];

export function tablesOf(rounds: Rounds): Table[] {
  const columns = ['', ...[...rounds.keys()].map(({ name }) => name)];
  const table = (title: string, scenes: readonly string[], figure: (scene: string) => Figure): Table => {
    const row = (scene: string) => [scene, ...[...rounds.values()].map((all) => middle(valuesOf(all, figure(scene))))];
    return { title, columns, rows: scenes.map(row), drawn: 'bars' };
  };
  const tails: Table = {
    title: 'p99 of all rounds together, s',
    columns,
    rows: [...alone, ...crowds].map((scene) => [scene, ...[...rounds.values()].map((all) => tailOf(all, scene))]),
  };
  return [
    ...ratiosOf(rounds),
    table('Pictures a second (more is better)', crowds, rate),
    table('One at a time: p50, ms (less is better)', alone, p50Ms),
    table('p50, s (less is better)', crowds, p50),
    table('p99, s (less is better)', crowds, p99),
    table('ms of a CPU for a picture (less is better)', ['idle', 'uniform', 'mixed'], cpu),
    table('Steps after clients left (less is better)', [`of ${stepsLeft} that were left`], () => afterLeaving),
    tails,
  ];
}

function tailOf(rounds: readonly Round[], scene: string): number {
  return quantile(
    rounds.flatMap(({ measured }) => measured.get(scene)!.seconds),
    0.99,
  );
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

/** Darkroom's figures over those of the best server, round by round, and which of the two is ahead. */
function ratiosOf(rounds: Rounds): Table[] {
  const [[own, ownRounds] = [], ...others] = [...rounds];
  if (own?.batches !== 'joining rows' || ownRounds === undefined) return [];
  const rows = ratios.flatMap(({ name, figure, better, aim, among }) => {
    const candidates = others.filter(([{ batches }]) => batches !== 'joining rows' && batches === (among ?? batches));
    const worth = (each: readonly Round[]): number => median(valuesOf(each, figure)) * (better === 'high' ? -1 : 1);
    const [best] = candidates.toSorted(([, left], [, right]) => worth(left) - worth(right));
    if (best === undefined) return [];
    const theirs = valuesOf(best[1], figure);
    const found = middle(valuesOf(ownRounds, figure).map((value, at) => value / theirs[at]!))!;
    const isAhead = better === 'high' ? found.value > 1 : found.value < 1;
    return [[name, best[0].name, found, aim, isAhead ? own.name : best[0].name]];
  });
  const columns = ['', 'best', 'ratio', 'aim', 'ahead'];
  return rows.length === 0 ? [] : [{ title: 'Darkroom ÷ the best server', columns, rows }];
}

function valuesOf(rounds: readonly Round[], figure: Figure): number[] {
  return rounds.map(figure).filter((value) => value !== undefined);
}
