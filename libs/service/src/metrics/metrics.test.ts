/** Metrics as Prometheus and probes get them, with real registries and sockets. */
import { createServer } from 'node:net';
import { once } from 'node:events';
import { parseExposition, silentLogger } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../logging/logger.ts';
import { Metrics } from './metrics.ts';
import { MetricsServer } from '../lifecycle/metrics-server.ts';
import { createReadiness, type Readiness } from './readiness.ts';

function createMetrics(): Metrics {
  return new Metrics({ app: 'test', log: silentLogger() });
}

async function startServer(metrics = createMetrics()): Promise<{ server: MetricsServer; readiness: Readiness }> {
  const readiness = createReadiness(metrics);
  const server = new MetricsServer({ metrics, readiness, host: '127.0.0.1', port: 0, log: silentLogger() });
  onTestFinished(() => server.stop());
  await server.start();
  return { server, readiness };
}

describe('a page of metrics', () => {
  it('contains all series, with the label `app`', async () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: 'eggs_total', help: 'Eggs.', labels: ['colour'] });
    counter.inc({ colour: 'brown "free\nrange"' }, 2);
    metrics.gauge({ name: 'hens', help: 'Hens.' }).set(3);
    metrics.histogram({ name: 'nest_seconds', help: 'Time.', buckets: [1, 2] }).observe(1.5);
    const page = parseExposition(await metrics.expose());
    expect(page.series('eggs_total')).toEqual([
      { name: 'eggs_total', labels: { colour: String.raw`brown \"free\nrange\"`, app: 'test' }, value: 2 },
    ]);
    expect(page.value('hens', { app: 'test' })).toBe(3);
    expect(page.value('nest_seconds_bucket', { app: 'test', le: '1' })).toBe(0);
    expect(page.value('nest_seconds_bucket', { app: 'test', le: '+Inf' })).toBe(1);
  });

  it('keeps the registries of one process separate', async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.counter({ name: 'eggs_total', help: 'Eggs.' }).inc();
    other.counter({ name: 'eggs_total', help: 'Eggs.' });
    expect(parseExposition(await other.expose()).value('eggs_total', { app: 'test' })).toBe(0);
  });

  it('accumulates the buckets of a stored histogram, and includes external text', async () => {
    const metrics = createMetrics();
    metrics.storedHistogram({ name: 'wait_seconds', help: 'Waiting.', labels: ['model'] }, () => [
      { labels: { model: 'tiny' }, bounds: [0.5, 1], counts: [2, 0, 3], sum: 7.5 },
    ]);
    metrics.addText(() => '# HELP foreign_count Theirs.\n# TYPE foreign_count gauge\nforeign_count 1\n');
    metrics.addText(() => '');
    const page = parseExposition(await metrics.expose());
    const labels = { app: 'test', model: 'tiny' };
    const bucket = (le: string): number | undefined => page.value('wait_seconds_bucket', { ...labels, le });
    expect([bucket('0.5'), bucket('1'), bucket('+Inf')]).toEqual([2, 2, 5]);
    expect(page.value('wait_seconds_sum', labels)).toBe(7.5);
    expect(page.value('foreign_count')).toBe(1);
  });

  it('refreshes its sources at every scrape, and omits only the series of a failed one', async () => {
    const lines: string[] = [];
    const log = createLogger({ app: 'test', stream: { write: (line) => void lines.push(line) } });
    const metrics = new Metrics({ app: 'test', log });
    const gauge = metrics.gauge({ name: 'depth', help: 'Depth.', labels: ['model'] });
    metrics.counter({ name: 'eggs_total', help: 'Eggs.' }).inc();
    const answers = [Promise.resolve(4), Promise.reject(new Error('Redis is away')), Promise.resolve(6)];
    metrics.onScrape({
      async refresh() {
        const depth = await answers.shift()!;
        return () => gauge.set({ model: 'tiny' }, depth);
      },
      clear: () => gauge.reset(),
    });
    const depths: (number | undefined)[] = [];
    for (let scrape = 0; scrape < 3; scrape++) {
      const page = parseExposition(await metrics.expose());
      depths.push(page.value('depth', { app: 'test', model: 'tiny' }));
      expect(page.value('eggs_total', { app: 'test' })).toBe(1);
    }
    expect(depths).toEqual([4, undefined, 6]);
    expect(lines.join('')).toContain('Redis is away');
  });

  it('lists its metric families in order', () => {
    const metrics = createMetrics();
    metrics.counter({ name: 'eggs_total', help: 'Eggs.', labels: ['colour'] });
    metrics.storedHistogram({ name: 'wait_seconds', help: 'Waiting.' }, () => []);
    expect(metrics.described).toEqual([
      { name: 'eggs_total', type: 'counter', labels: ['colour'], help: 'Eggs.' },
      { name: 'wait_seconds', type: 'histogram', labels: [], help: 'Waiting.' },
    ]);
  });
});

describe('the server of metrics', () => {
  it('serves metrics with the content type that Prometheus expects', async () => {
    const { server } = await startServer();
    const response = await fetch(`${server.url}/metrics?collect=all`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(parseExposition(await response.text()).value('darkroom_ready', { app: 'test' })).toBe(0);
  });

  it('is ready between start and stop if the check succeeds', async () => {
    const { server, readiness } = await startServer();
    const statuses: number[] = [];
    const probe = async (): Promise<unknown> => statuses.push((await fetch(`${server.url}/ready`)).status);
    await probe();
    readiness.isStarted = true;
    await probe();
    readiness.check = () => false;
    await probe();
    readiness.check = () => Promise.reject(new Error('Redis is away'));
    await probe();
    readiness.check = () => Promise.resolve(true);
    await probe();
    const page = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
    expect(page.value('darkroom_ready', { app: 'test' })).toBe(1);
    readiness.isStarted = false;
    await probe();
    expect(statuses).toEqual([503, 200, 503, 503, 200, 503]);
    expect((await fetch(`${server.url}/live`)).status).toBe(200);
  });

  it('answers 404 for unknown paths and 405 for other methods than GET and HEAD', async () => {
    const { server } = await startServer();
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(404);
    const posted = await fetch(`${server.url}/metrics`, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const head = await fetch(`${server.url}/metrics`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('does not start on a port that is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const metrics = createMetrics();
    const { port } = taken.address() as { port: number };
    const readiness = createReadiness(metrics);
    const server = new MetricsServer({ metrics, readiness, host: '127.0.0.1', port, log: silentLogger() });
    await expect(server.start()).rejects.toThrow('EADDRINUSE');
  });
});
