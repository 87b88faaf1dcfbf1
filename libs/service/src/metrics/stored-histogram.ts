/** One series of a histogram that is counted elsewhere. */
export interface HistogramSeries {
  labels: Readonly<Record<string, string>>;
  /** Upper bounds, rising, without the infinite one. */
  bounds: readonly number[];
  /** How many fell into each bucket, not summed up; one more than there are bounds. */
  counts: readonly number[];
  sum: number;
}

export type ReadSeries = () => readonly HistogramSeries[];

/** A histogram as a prom-client registry reads one: buckets summed up, as the format wants them. */
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
