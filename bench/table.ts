/** Tables of figures, as Markdown and as panels of a plot. */
import type { Bar, Panel } from './plot.ts';
import { quantile } from './report.ts';

/** A cell; undefined if not measured. */
export type Cell = string | number | Bar | undefined;

export interface Table {
  /** Quantity, unit, and which direction is better. */
  title: string;
  columns: readonly (string | number)[];
  rows: readonly (readonly Cell[])[];
  /**
   * Type of plot, if drawn. `bars`: each row is a group, each column a color. `lines`: one per column, over the first
   * column. `lines of rows`: one per row, over the numeric columns.
   */
  drawn?: 'bars' | 'lines' | 'lines of rows' | undefined;
}

/** Results by column, then by row. */
export type Found = Readonly<Record<string, Readonly<Record<string, Cell>>>>;

/** Returns a table. @param names names of the rows; by default all of the first column. */
export function tableOf(title: string, found: Found, names?: readonly string[], isDrawn = true): Table {
  const columns = Object.values(found);
  const rows = (names ?? Object.keys(columns[0] ?? {})).map((name) => [name, ...columns.map((each) => each[name])]);
  return { title, columns: ['', ...Object.keys(found)], rows, drawn: isDrawn ? 'bars' : undefined };
}

const percentiles = { p10: 0.1, p25: 0.25, p50: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99, worst: 1 };

/** Returns a table of percentiles with one column, and one line of the plot, per name. */
export function percentileTable(title: string, found: Readonly<Record<string, readonly number[]>>): Table {
  const all = Object.values(found);
  const rows = Object.entries(percentiles).map(([name, share]) => [name, ...all.map((each) => quantile(each, share))]);
  return { title, columns: ['', ...Object.keys(found)], rows, drawn: 'lines' };
}

/** Returns the table as Markdown with aligned columns. */
export function tableText({ title, columns, rows }: Table): string {
  const cells = [columns, ...rows].map((row) => columns.map((_, at) => written(row[at])));
  const widths = columns.map((_, at) => Math.max(3, ...cells.map((row) => row[at]!.length)));
  const [head, ...others] = cells.map((row) => line(row.map((cell, at) => cell.padEnd(widths[at]!))));
  return [`${title}:`, '', head, line(widths.map((width) => '-'.repeat(width))), ...others].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function written(cell: Cell): string {
  if (cell === undefined) return '–';
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'number') return figure(cell);
  return cell.spread === undefined
    ? figure(cell.value)
    : `${figure(cell.value)} (${cell.spread.map(figure).join('–')})`;
}

/** Formats whole numbers in full and others with three digits. */
function figure(value: number): string {
  const digits = Number.isInteger(value) ? {} : { maximumSignificantDigits: 3, minimumSignificantDigits: 2 };
  return value.toLocaleString('en', digits);
}

/** Returns the panel of a table; undefined if it is not drawn. */
export function panelOf({ title, columns, rows, drawn }: Table): Panel | undefined {
  if (drawn === undefined) return undefined;
  const names = columns.slice(1).map(String);
  if (drawn === 'bars') {
    const series = names.map((name, at) => ({ name, bars: rows.map((row) => barOf(row[at + 1])) }));
    return { kind: 'bars', title, groups: rows.map(([name]) => written(name)), series };
  }
  if (drawn === 'lines of rows') {
    const series = rows.map((row) => ({ name: written(row[0]), points: pointsOf(columns, row) }));
    return { kind: 'lines', title, xTitle: String(columns[0]), series };
  }
  const isNamed = rows.every(([x]) => typeof x === 'string');
  const xs = rows.map(([x], at) => (isNamed ? at : x));
  const series = names.map((name, at) => ({
    name,
    points: pointsOf(
      xs,
      rows.map((row) => row[at + 1]),
    ),
  }));
  const xNames = isNamed ? { xNames: rows.map(([x]) => written(x)) } : {};
  return { kind: 'lines', title, xTitle: String(columns[0]), ...xNames, series };
}

/** Returns the points of which both coordinates are numbers. */
function pointsOf(xs: readonly Cell[], ys: readonly Cell[]): (readonly [x: number, y: number])[] {
  return xs.flatMap((x, at) => {
    const y = barOf(ys[at])?.value;
    return typeof x === 'number' && y !== undefined ? [[x, y] as const] : [];
  });
}

function barOf(cell: Cell): Bar | undefined {
  if (typeof cell === 'number') return { value: cell };
  return typeof cell === 'string' ? undefined : cell;
}
