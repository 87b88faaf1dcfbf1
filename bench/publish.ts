/** What a bench leaves: tables on the screen and, with a plot, in docs/benchmarks. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { drawPlot, type Panel } from './plot.ts';

/** Before the bench begins: what others were doing. */
const [othersLoad = 0] = loadavg();
/** A load above this is more than what starting a bench makes. */
const quietLoad = 1;

const directory = new URL('../docs/benchmarks/', import.meta.url).pathname;

export interface Table {
  /** What it shows, if there are several. */
  title?: string;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

export interface Findings {
  /** Of the files. */
  name: string;
  title: string;
  /** That measures it again. */
  command: string;
  /** What was measured and how, one sentence each. */
  notes: readonly string[];
  tables: readonly Table[];
  panels: readonly Panel[];
  /** Of others that took part, besides Node, ONNX Runtime and Redis. */
  versions?: Readonly<Record<string, string>>;
}

/** Prints the tables and, unless only a part was measured, writes `docs/benchmarks/<name>.svg` and `.md`. */
export function publish(
  { name, title, command, notes, tables, panels, versions = {} }: Findings,
  { isWritten = true }: { isWritten?: boolean } = {},
): void {
  const source = sourceOf(command, versions);
  const all = othersLoad > quietLoad ? [busyNote(), ...notes] : notes;
  const written = tables.map(tableText).join('\n\n');
  process.stdout.write(`\n${title}\n\n${written}\n\n${[...all, ...source].join('\n')}\n`);
  if (!isWritten) return;
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    join(directory, `${name}.svg`),
    drawPlot({ title, panels, footer: othersLoad > quietLoad ? [busyNote(), ...source] : source }),
  );
  const page = [
    `# ${title}`,
    `![${title}](${name}.svg)`,
    written,
    ...all,
    source.map((line) => `- ${line}`).join('\n'),
  ];
  writeFileSync(join(directory, `${name}.md`), `${page.join('\n\n')}\n`);
}

function busyNote(): string {
  return `Not a quiet machine: its load was ${othersLoad.toFixed(1)} before this began. Times say little then, counts of steps and simulated times do.`;
}

/** Command, machine, date and versions, a line each. */
function sourceOf(command: string, versions: Readonly<Record<string, string>>): string[] {
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
  return [
    `Command: ${command}`,
    `Machine: ${others.length + 1} × ${first?.model.trim() ?? 'unknown'}, ${memory}, Linux ${release()}; load ${load} (1, 5, 15 minutes)`,
    `Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC; commit ${run('git', 'rev-parse', '--short', 'HEAD').trim()}`,
    `Versions: ${all.join(', ')}`,
  ];
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function run(program: string, ...words: string[]): string {
  try {
    return execFileSync(program, words, { encoding: 'utf8', cwd: directory.replace(/docs\/benchmarks\/$/, '') });
  } catch {
    return 'unknown';
  }
}

/** As Markdown has it, with columns of one width. */
function tableText({ title, columns, rows }: Table): string {
  const widths = columns.map((column, at) => Math.max(column.length, 3, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (cells[at] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  const table = [line(columns), rule, ...rows.map(line)].join('\n');
  return title === undefined ? table : `${title}:\n\n${table}`;
}
