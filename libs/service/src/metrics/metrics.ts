/** Metrics of a process, in the text format of Prometheus. The only importer of prom-client. */
import { setTimeout as delay } from 'node:timers/promises';
import { collectDefaultMetrics, Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { Logger } from '../logging/logger.ts';
import { type ReadSeries, storedHistogram } from './stored-histogram.ts';

export interface CreateMetricsOptions {
  /** Name of the process; the label `app` of every series. */
  app: string;
  log: Logger;
  /** Adds Node's process metrics: memory, CPU time, event-loop lag. At most once per process; cannot be undone. */
  withProcess?: boolean;
}

/** A metric family. Labels must have few values: never an id, a prompt or text from clients. */
export interface MetricOptions<Label extends string> {
  /** Named by Prometheus' conventions: base units; counters end in `_total`. */
  name: string;
  /** One sentence; docs/metrics.md must match it. */
  help: string;
  labels?: readonly Label[];
}

export interface HistogramOptions<Label extends string> extends MetricOptions<Label> {
  /** Upper bounds, ascending. */
  buckets: readonly number[];
}

/** A source of values that are queried at every scrape. */
export interface ScrapeSource {
  /** Queries the values. @returns a function that sets them all at once. */
  refresh: () => Promise<() => void>;
  /** Removes outdated values after a failed refresh. */
  clear: () => void;
}

/** Timeout of a source; Prometheus gives up after 10 s. */
const refreshTimeoutMs = 3000;

/** Row of docs/metrics.md. */
export interface MetricDescription extends Required<MetricOptions<string>> {
  type: string;
}

/** Buckets for durations in seconds, from a millisecond to ten minutes. */
export const durationBuckets: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/**
 * Sampling interval of the event-loop lag, ms, and so its minimum. With prom-client's 10 ms, an idle process needs 3 ms
 * of CPU time per second for it.
 */
const lagPrecisionMs = 100;

/** Metrics of one app, with a separate registry, so that tests can create several. */
export class Metrics {
  /** All families in order of creation. */
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

  /** Adds a histogram that is counted elsewhere (in Redis); calls `read` at every scrape. */
  storedHistogram(options: MetricOptions<string>, read: ReadSeries): void {
    const { name, help } = this.#describe('histogram', options);
    // prom-client only calls `get` of a metric.
    this.#registry.registerMetric(storedHistogram(name, help, read) as Metric);
  }

  /** Adds a source. If it fails or takes too long, that is logged and the scrape omits its values. */
  onScrape(source: ScrapeSource): void {
    this.#sources.push(source);
  }

  /** Adds external text in Prometheus' format; its families must have other names. */
  addText(text: () => string): void {
    this.#texts.push(text);
  }

  async expose(): Promise<string> {
    await Promise.all(this.#sources.map((source) => this.#refresh(source)));
    const texts = this.#texts.map((text) => text()).filter((text) => text !== '');
    return [await this.#registry.metrics(), ...texts].join('\n');
  }

  async #refresh({ refresh, clear }: ScrapeSource): Promise<void> {
    const timeout = delay(refreshTimeoutMs, undefined, { ref: false });
    try {
      const show = await Promise.race([refresh(), timeout]);
      if (show === undefined) throw new Error(`no answer in ${refreshTimeoutMs} ms`);
      show();
    } catch (error) {
      clear();
      this.#log.warn({ err: error }, 'metrics incomplete: a source failed');
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
