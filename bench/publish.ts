/** Output of a bench: tables on the terminal and, with `PUBLISH=true`, a page with a plot in docs/benchmarks. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { drawPlot } from './plot.ts';
import { panelOf, type Table, tableText } from './table.ts';

const root = new URL('../', import.meta.url).pathname;
const directory = join(root, 'docs/benchmarks');

/** Cores that other processes keep busy before the bench starts. */
const otherBusyCores = coresBusyFor(1000);
/** Maximum busy cores of a quiet machine. */
const quietCores = 0.2;

export interface Findings {
  /** Name of the bench (`npm run bench -- <name>`) and of its page. */
  name: string;
  title: string;
  /** Notes on what was measured and how, one per paragraph. */
  notes: readonly string[];
  tables: readonly Table[];
  /** Versions of other programs than Node, ONNX Runtime and Redis. */
  versions?: Readonly<Record<string, string>>;
}

/** Prints the tables; with `PUBLISH=true`, writes docs/benchmarks/<name>.md and a plot of drawn tables, <name>.svg. */
export function publish({ name, title, notes, tables, versions = {} }: Findings, isWhole = true): void {
  const source = sourceOf(name, versions);
  const remarks = otherBusyCores > quietCores ? [busyNote()] : [];
  const written = tables.map(tableText).join('\n\n');
  process.stdout.write(`\n${title}\n\n${written}\n\n${[...remarks, ...notes, ...source].join('\n')}\n`);
  if (process.env['PUBLISH'] !== 'true' || !isWhole) return;
  const panels = tables.map(panelOf).filter((panel) => panel !== undefined);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${name}.svg`), drawPlot({ title, panels, footer: [...remarks, ...source] }));
  const sources = source.map((line) => `- ${line}`).join('\n');
  const page = [`# ${title}`, `![${title}](${name}.svg)`, written, ...remarks, ...notes, sources];
  writeFileSync(join(directory, `${name}.md`), `${page.join('\n\n')}\n`);
}

/** Publishes the findings of a bench of several tests; writes a page only if all of them have run and passed. */
export function publishAtEnd(find: () => Findings): void {
  // Vitest parses this parameter for the requested fixtures.
  // oxlint-disable-next-line no-empty-pattern
  afterAll(({}, { tasks }) =>
    publish(
      find(),
      tasks.every(({ result }) => result?.state === 'pass'),
    ),
  );
}

function busyNote(): string {
  return `Not a quiet machine: other processes used ${otherBusyCores.toFixed(1)} of its ${cpus().length} cores before the bench started. Rely on the ratios, not on the times.`;
}

/** Returns command, machine, date and versions, one line each. */
function sourceOf(name: string, versions: Readonly<Record<string, string>>): string[] {
  const [first, ...others] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`;
  const load = loadavg()
    .map((each) => each.toFixed(1))
    .join(', ');
  const own = {
    Node: process.versions.node,
    'ONNX Runtime': versionOf('onnxruntime-node'),
    Redis: /v=(?<version>[\d.]+)/.exec(run('redis-server', '--version'))?.groups?.['version'] ?? 'unknown',
  };
  const all = Object.entries({ ...own, ...versions }).map(([program, version]) => `${program} ${version}`);
  const changed = Object.entries(process.env).flatMap(([variable, value]) =>
    /^(?:BENCH_|PEERS$)/.test(variable) ? [`${variable}=${value} `] : [],
  );
  return [
    `Command: ${changed.join('')}npm run bench -- ${name}; it took ${Math.ceil(performance.now() / 60_000)} min`,
    `Machine: ${others.length + 1} × ${first?.model.trim() ?? 'unknown'}, ${memory}, Linux ${release()}; load ${load} (1, 5, 15 minutes)`,
    `Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC; commit ${run('git', 'rev-parse', '--short', 'HEAD').trim()}`,
    `Versions: ${all.join(', ')}`,
  ];
}

function versionOf(name: string): string {
  return (JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string })
    .version;
}

function run(program: string, ...words: string[]): string {
  try {
    return execFileSync(program, words, { encoding: 'utf8', cwd: root });
  } catch {
    return 'unknown';
  }
}

/** Returns the number of busy cores while this thread sleeps, including CPU time stolen by the host. */
function coresBusyFor(ms: number): number {
  const before = ticks();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const [busy, all] = ticks().map((each, at) => each - before[at]!);
  return (cpus().length * busy!) / all!;
}

/** Returns the ticks of all cores since boot: busy, and total. */
function ticks(): [busy: number, all: number] {
  const [user, nice, system, idle, waiting, ...others] = /^cpu +(.*)/
    .exec(readFileSync('/proc/stat', 'utf8'))![1]!
    .split(' ')
    .map(Number) as [number, number, number, number, number, ...number[]];
  // Add interrupts and stolen time. Skip the last two fields (guests), which `user` and `nice` include.
  const busy = [user, nice, system, ...others.slice(0, 3)].reduce((sum, each) => sum + each, 0);
  return [busy, busy + idle + waiting];
}
