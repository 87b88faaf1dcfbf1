/** Formats rows as a table with aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_cell, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const cellsOf = (row: readonly string[]): string[] => row.map((cell, column) => cell.padEnd(widths[column]!));
  return rows.map((row) => cellsOf(row).join('  ').trimEnd()).join('\n');
}
