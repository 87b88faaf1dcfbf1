/** Converts the rounds of all peers to tables. */
import type { Bar } from '../plot.ts';
import { median, medianWithRange, quantile } from '../report.ts';
import type { Table } from '../table.ts';
import type { Peer } from './peer.ts';
import { type Measured, type Round, stepsRemaining } from './scenes.ts';

type Rounds = ReadonlyMap<Peer, readonly Round[]>;
/** Returns one figure of a round. */
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
    const row = (scene: string) => [
      scene,
      ...[...rounds.values()].map((all) => medianWithRange(valuesOf(all, figure(scene)))),
    ];
    return { title, columns, rows: scenes.map(row), drawn: 'bars' };
  };
  const tails: Table = {
    title: 'p99 of all rounds together, s',
    columns,
    rows: [...alone, ...crowds].map((scene) => [scene, ...[...rounds.values()].map((all) => tailOf(all, scene))]),
  };
  return [
    ratiosOf(rounds),
    table('Images a second (more is better)', crowds, rate),
    table('One at a time: p50, ms (less is better)', alone, p50Ms),
    table('p50, s (less is better)', crowds, p50),
    table('p99, s (less is better)', crowds, p99),
    table('ms of a CPU for an image (less is better)', ['idle', 'uniform', 'mixed'], cpu),
    table('Steps after clients left (less is better)', [`of ${stepsRemaining} that were left`], () => afterLeaving),
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
  /** Compares with the best of the peers with this kind of batches. */
  among?: Peer['batches'];
  /** Reason if a peer is ahead; by default CPU time outside the model. */
  why?: string;
}

const handedOver =
  'a request is stored in Redis before the response, and passes four processes to the engine and back; a peer has it only in the memory of one process and loses it in a crash';
const shared = 'a long request shares its steps with all rows that join, while a static batch shrinks towards its end';
const besides =
  'the model is the same on both sides, so CPU time outside it decides, and Darkroom stores each request, image and end';

const ratios: readonly Ratio[] = [
  { name: 'idle: p50', figure: p50('idle'), better: 'low', aim: '≤ 1.00', why: handedOver },
  { name: 'tiny: p50', figure: p50('tiny'), better: 'low', aim: '≤ 1.05', why: handedOver },
  { name: 'uniform: images/s', figure: rate('uniform'), better: 'high', aim: '≥ 1.02' },
  { name: 'mixed: images/s, who groups', figure: rate('mixed'), better: 'high', aim: '≥ 1.40', among: 'groups' },
  { name: 'mixed: images/s, rows by hand', figure: rate('mixed'), better: 'high', aim: '≥ 1.05', among: 'rows' },
  { name: 'mixed: p99, rows by hand', figure: p99('mixed'), better: 'low', aim: '≤ 1.00', among: 'rows', why: shared },
  { name: 'burst: all 200 done', figure: wholeS('burst'), better: 'low', aim: '≤ 1.00' },
  { name: 'CPU of an image, uniform', figure: cpu('uniform'), better: 'low', aim: '' },
  { name: 'CPU of an image, mixed', figure: cpu('mixed'), better: 'low', aim: '' },
];

interface Comparison extends Ratio {
  best: string;
  /** Darkroom's figures divided by those of the best server, round by round. */
  ratio: Bar;
  isAhead: boolean;
}

function comparisonsOf(rounds: Rounds): Comparison[] {
  const [[own, ownRounds] = [], ...others] = [...rounds];
  if (own?.batches !== 'joining rows' || ownRounds === undefined) return [];
  return ratios.flatMap((each) => {
    const { figure, better, among } = each;
    const candidates = others.filter(([{ batches }]) => batches !== 'joining rows' && batches === (among ?? batches));
    const worth = (of: readonly Round[]): number => median(valuesOf(of, figure)) * (better === 'high' ? -1 : 1);
    const [best] = candidates.toSorted(([, left], [, right]) => worth(left) - worth(right));
    if (best === undefined) return [];
    const theirs = valuesOf(best[1], figure);
    const ratio = medianWithRange(valuesOf(ownRounds, figure).map((value, at) => value / theirs[at]!))!;
    return [{ ...each, best: best[0].name, ratio, isAhead: better === 'high' ? ratio.value > 1 : ratio.value < 1 }];
  });
}

function ratiosOf(rounds: Rounds): Table {
  const rows = comparisonsOf(rounds).map(({ name, best, ratio, aim, isAhead }) => {
    return [name, best, ratio, aim, isAhead ? 'Darkroom' : best];
  });
  return { title: 'Darkroom ÷ the best server', columns: ['', 'best server', 'ratio', 'aim', 'ahead'], rows };
}

/** Returns a sentence per ratio in which a peer is ahead, with the reason. */
export function lossesOf(rounds: Rounds): string[] {
  return comparisonsOf(rounds).flatMap(({ name, best, isAhead, why = besides }) =>
    isAhead ? [] : [`${best} is ahead in "${name}": ${why}.`],
  );
}

function valuesOf(rounds: readonly Round[], figure: Figure): number[] {
  return rounds.map(figure).filter((value) => value !== undefined);
}
