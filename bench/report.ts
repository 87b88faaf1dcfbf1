/** The middle value; of an even number the lower of the two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` (0–1) of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}

/** Prints one result block, as bench/README.md quotes it. */
export function report(title: string, rows: Readonly<Record<string, number | string>>): void {
  const width = Math.max(...Object.keys(rows).map((name) => name.length));
  const lines = Object.entries(rows).map(
    ([name, value]) => `  ${name.padEnd(width)}  ${typeof value === 'number' ? value.toPrecision(4) : value}`,
  );
  process.stdout.write(`\n${title}\n${lines.join('\n')}\n`);
}
