/** docs/metrics.md, the alerts and the dashboard name exactly the metrics of the code. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { createReadiness, type MetricDescription, Metrics } from '@darkroom/service';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { createApiMetrics } from '../../apps/api/src/http/api-metrics.ts';
import { createFormerMetrics } from '../../apps/batch-former/src/batch-former.ts';
import { createKeySizeReport, reportQueues } from '../../apps/janitor/src/report-queues.ts';
import { createSenderMetrics } from '../../apps/webhook-sender/src/sender-metrics.ts';
import { createMemorySeries } from '../../apps/worker/src/meters/worker-series.ts';
import { createWorkerSeries } from '../../apps/worker/src/meters/worker-series.ts';

const root = new URL('../../', import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, root), 'utf8');
}

function describeApp(app: string, create: (metrics: Metrics) => unknown): (MetricDescription & { app: string })[] {
  const metrics = new Metrics({ app, log: silentLogger() });
  create(metrics);
  return metrics.described.map((description) => ({ ...description, app }));
}

function everything(): (MetricDescription & { app: string })[] {
  const store = openTestStore();
  return [
    ...describeApp('all', createReadiness),
    ...describeApp('janitor', (metrics) => {
      reportQueues({ store, metrics });
      createKeySizeReport(metrics);
    }),
    ...describeApp('worker', createWorkerSeries),
    ...describeApp('worker', createMemorySeries),
    ...describeApp('batch-former', createFormerMetrics),
    ...describeApp('api', createApiMetrics),
    ...describeApp('webhook-sender', createSenderMetrics),
  ];
}

it('docs/metrics.md lists every metric as the code describes it', () => {
  const rows = everything().map(({ app, name, type, labels, help }) => {
    const names = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${names} | ${app} | ${help} |`;
  });
  const documented = read('docs/metrics.md').split('\n');
  expect(documented.filter((line) => line.startsWith('| `darkroom_'))).toEqual(rows);
});

it.each([
  'deploy/prometheus/alerts.yml',
  'deploy/prometheus/alerts.test.yml',
  'deploy/grafana/dashboards/darkroom.json',
])('%s uses only existing metrics and labels', (path) => {
  const known = new Map(everything().map(({ name, labels }) => [name, new Set(['app', 'instance', 'le', ...labels])]));
  const found = [...read(path).matchAll(/\b(?<name>darkroom_\w+)(?:\{(?<labels>[^}]*)\})?/g)];
  expect(found.length).toBeGreaterThan(10);
  for (const { groups } of found) {
    const { name = '', labels = '' } = groups ?? {};
    const family = known.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');
    expect([...known.keys()]).toContain(family);
    for (const [, label = ''] of labels.matchAll(/(\w+)=~?\\?"/g)) expect([...known.get(family)!]).toContain(label);
  }
});

it('no metric label can hold an id, a prompt or an owner', () => {
  const labels = new Set(everything().flatMap((description) => description.labels));
  expect([...labels].toSorted()).toEqual([
    'kind',
    'method',
    'model',
    'next',
    'outcome',
    'reason',
    'route',
    'shape',
    'state',
    'status',
    'what',
  ]);
});

const run = promisify(execFile);
const promtool = await run('promtool', ['--version']).then(
  () => 'promtool',
  () => undefined,
);

it('promtool: the alerts fire when they should, and only then', async ({ skip }) => {
  skip(promtool === undefined, 'promtool is not installed (part of Prometheus)');
  const cwd = new URL('deploy/prometheus/', root);
  await run(promtool!, ['check', 'config', 'prometheus.yml'], { cwd });
  const { stdout } = await run(promtool!, ['test', 'rules', 'alerts.test.yml'], { cwd });
  expect(stdout).toContain('SUCCESS');
});
