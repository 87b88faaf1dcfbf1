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

interface Sample {
  metricName: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** A histogram as a prom-client registry reads one. */
export class StoredHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'max';
  readonly #read: ReadSeries;

  constructor(name: string, help: string, read: ReadSeries) {
    this.name = name;
    this.help = help;
    this.#read = read;
  }

  /** Buckets summed up, as the format wants them. */
  get(): Promise<{ name: string; help: string; type: string; values: Sample[] }> {
    const { name, help, type } = this;
    return Promise.resolve({ name, help, type, values: this.#read().flatMap((series) => this.#samplesOf(series)) });
  }

  #samplesOf({ labels, bounds, counts, sum }: HistogramSeries): Sample[] {
    const samples: Sample[] = [];
    let count = 0;
    for (const [position, inBucket] of counts.entries()) {
      count += inBucket;
      const le = position < bounds.length ? String(bounds[position]) : '+Inf';
      samples.push({ metricName: `${this.name}_bucket`, labels: { ...labels, le }, value: count });
    }
    samples.push({ metricName: `${this.name}_sum`, labels, value: sum });
    samples.push({ metricName: `${this.name}_count`, labels, value: count });
    return samples;
  }
}
