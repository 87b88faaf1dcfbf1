/** One series of a histogram counted elsewhere. */
export interface HistogramSeries {
  labels: Readonly<Record<string, string>>;
  /** Upper bounds, ascending, without infinity. */
  bounds: readonly number[];
  /** Number of values per bucket, not cumulative; one more than there are bounds. */
  counts: readonly number[];
  sum: number;
}

export type ReadSeries = () => readonly HistogramSeries[];

/** Creates a histogram in the form that a prom-client registry reads, with cumulative buckets. */
export function storedHistogram(name: string, help: string, read: ReadSeries): object {
  const facts = { name, help, type: 'histogram', aggregator: 'max' };
  return { ...facts, get: async () => ({ ...facts, values: read().flatMap((series) => samplesOf(name, series)) }) };
}

function samplesOf(name: string, { labels, bounds, counts, sum }: HistogramSeries): object[] {
  let count = 0;
  const buckets = counts.map((inBucket, position) => {
    count += inBucket;
    const le = position < bounds.length ? String(bounds[position]) : '+Inf';
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
