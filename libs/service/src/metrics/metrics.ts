/** What a process counts and measures, in the text format that Prometheus reads. The only importer of prom-client. */
import { setTimeout as delay } from 'node:timers/promises';
import { collectDefaultMetrics, Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { Logger } from '../logging/logger.ts';
import { type ReadSeries, storedHistogram } from './stored-histogram.ts';

export interface CreateMetricsOptions {
  /** The process, as the label `app` of every series. */
  app: string;
  log: Logger;
  /** Also what Node says of its process: memory, processor time, event-loop lag. Once per process, it cannot be undone. */
  withProcess?: boolean;
}

/** A family of series. Labels must have few values: never an id, a prompt or what a client made up. */
export interface MetricOptions<Label extends string> {
  /** Prometheus' way: base units, counters end in `_total`. */
  name: string;
  /** One sentence; docs/metrics.md is made from it. */
  help: string;
  labels?: readonly Label[];
}

export interface HistogramOptions<Label extends string> extends MetricOptions<Label> {
  /** Upper bounds, rising. */
  buckets: readonly number[];
}

/** What has to be asked for at every scrape. */
export interface ScrapeSource {
  /** Asks, and returns what shows the answers, all at once. */
  refresh: () => Promise<() => void>;
  /** There was no answer: nothing may be shown that was true once. */
  clear: () => void;
}

/** How long a scrape waits for a source; Prometheus gives up after 10 s. */
const refreshTimeoutMs = 3000;

/** What docs/metrics.md says of a family. */
export interface MetricDescription extends Required<MetricOptions<string>> {
  type: string;
}

/** From a millisecond to ten minutes, for durations in seconds. */
export const durationBuckets: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** How often the event loop's lag is looked at, which no lag is less than. With prom-client's 10 a process at rest takes 3 ms of a CPU each second for that alone. */
const lagPrecisionMs = 100;

/** One process's metrics: a registry of its own, so that tests can have as many as they like. */
export class Metrics {
  /** Every family made here, in the order they were made. */
  readonly described: MetricDescription[] = [];
  readonly contentType: string = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry = new Registry();
  readonly #log: Logger;
  readonly #sources: ScrapeSource[] = [];
  readonly #texts: (() => string)[] = [];

  constructor({ app, log, withProcess = false }: CreateMetricsOptions) {
    this.#log = log;
    this.#registry.setDefaultLabels({ app });
    if (withProcess) collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: lagPrecisionMs });
  }

  counter<Label extends string = never>(options: MetricOptions<Label>): Counter<Label> {
    return new Counter<Label>(this.#describe('counter', options));
  }

  gauge<Label extends string = never>(options: MetricOptions<Label>): Gauge<Label> {
    return new Gauge<Label>(this.#describe('gauge', options));
  }

  histogram<Label extends string = never>({ buckets, ...options }: HistogramOptions<Label>): Histogram<Label> {
    return new Histogram<Label>({ ...this.#describe('histogram', options), buckets: [...buckets] });
  }

  /** A histogram that is counted elsewhere (in Redis); `read` is asked at every scrape. */
  storedHistogram(options: MetricOptions<string>, read: ReadSeries): void {
    const { name, help } = this.#describe('histogram', options);
    // prom-client asks a metric for its values and nothing else.
    this.#registry.registerMetric(storedHistogram(name, help, read) as Metric);
  }

  /** A source that fails or takes too long is logged, and the scrape shows all the rest. */
  onScrape(source: ScrapeSource): void {
    this.#sources.push(source);
  }

  /** Text in the same format that somebody else has made, with families of other names. */
  addText(text: () => string): void {
    this.#texts.push(text);
  }

  async expose(): Promise<string> {
    await Promise.all(this.#sources.map((source) => this.#refresh(source)));
    const texts = this.#texts.map((text) => text()).filter((text) => text !== '');
    return [await this.#registry.metrics(), ...texts].join('\n');
  }

  async #refresh({ refresh, clear }: ScrapeSource): Promise<void> {
    const late = delay(refreshTimeoutMs, undefined, { ref: false });
    try {
      const show = await Promise.race([refresh(), late]);
      if (show === undefined) throw new Error(`no answer in ${refreshTimeoutMs} ms`);
      show();
    } catch (error) {
      clear();
      this.#log.warn({ err: error }, 'a scrape is incomplete');
    }
  }

  #describe<Label extends string>(
    type: string,
    { name, help, labels = [] }: MetricOptions<Label>,
  ): { name: string; help: string; labelNames: readonly Label[]; registers: [Registry] } {
    this.described.push({ name, type, labels, help });
    return { name, help, labelNames: labels, registers: [this.#registry] };
  }
}
