/** OpenTelemetry: each request is one trace across all processes, exported over OTLP. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { ended, stream, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';

interface CollectedSpan {
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  text: string;
}

interface OtlpTraces {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: { name: string; traceId: string; spanId: string; parentSpanId?: string }[] }[];
  }[];
}

/** Starts an OTLP collector that stores all spans. */
async function openCollector(): Promise<{ url: string; spans: CollectedSpan[] }> {
  const spans: CollectedSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as OtlpTraces;
      for (const { resource, scopeSpans } of resourceSpans) {
        const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
        for (const { spans: sent } of scopeSpans)
          for (const span of sent)
            spans.push({ ...span, service, parentSpanId: span.parentSpanId || undefined, text: JSON.stringify(span) });
      }
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans };
}

const traceId = '0af7651916cd43dd8448eb211c80319c';

it("links the spans of all processes, including the janitor's recovery, to the client's traceparent", async () => {
  const { url: collectorUrl, spans } = await openCollector();
  const system = await openSystem({
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl, OTEL_BSP_SCHEDULE_DELAY: '50', CHECKPOINT_STEPS: '0' },
  });
  const response = await fetch(`${system.url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: JSON.stringify({ prompt: 'a secret garden', num_inference_steps: 200 }),
  });
  const { request_id: id } = (await response.json()) as { request_id: string };
  await stream(system.url, id, { until: ({ event }) => event === 'progress' });
  const first = system.part('worker');
  await first.kill();
  await system.start('worker');
  expect(await ended(system.url, id)).toBe('succeeded');
  // Only spans of the client's trace.
  const traceSpans = (): CollectedSpan[] => spans.filter((span) => span.traceId === traceId);
  const named = (): string[] => traceSpans().map(({ service, name }) => `${service} ${name}`);
  // Each process exports its spans in batches, with a delay.
  await expect
    .poll(() => new Set(named()))
    .toEqual(
      new Set([
        'darkroom-api POST /v1/predict',
        'darkroom-batch-former dispatch',
        'darkroom-janitor recover',
        'darkroom-worker run',
      ]),
    );
  const dispatches = () => named().filter((name) => name === 'darkroom-batch-former dispatch');
  await expect.poll(dispatches).toHaveLength(2);
  const known = new Set(['b7ad6b7169203331', ...traceSpans().map(({ spanId }) => spanId)]);
  expect(traceSpans().filter(({ parentSpanId }) => !known.has(parentSpanId ?? ''))).toEqual([]);
  expect(spans.filter(({ text }) => text.includes('secret garden'))).toEqual([]);
  // Only the API starts traces: polls of empty queues create none.
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
  expect(new Set(roots.map(({ service }) => service))).toEqual(new Set(['darkroom-api']));
});

it('serves requests and stops normally while the collector is unreachable', async () => {
  const system = await openSystem({ environment: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
  const id = await submit(system.url, { prompt: 'a cat face', num_inference_steps: 2 });
  expect(await ended(system.url, id)).toBe('succeeded');
  const api = system.part('api');
  await api.stop();
  expect(api.process.exitCode).toBe(0);
});
