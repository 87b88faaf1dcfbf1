import { itemAt, pairUp } from '@darkroom/core';
/** Formats rows as a table with aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = itemAt(rows, 0).map((_cell, column) => Math.max(...rows.map((row) => itemAt(row, column).length)));
  const cellsOf = (row: readonly string[]): string[] => pairUp(row, widths).map(([cell, width]) => cell.padEnd(width));
  return rows.map((row) => cellsOf(row).join('  ').trimEnd()).join('\n');
}
