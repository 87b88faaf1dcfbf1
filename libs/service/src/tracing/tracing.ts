/**
 * OpenTelemetry traces: one request is one trace through all processes. Without `startTracing` nothing is recorded and
 * no SDK is loaded. No span contains a prompt.
 */
import {
  type Context,
  context,
  diag,
  DiagLogLevel,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { AppName } from '@darkroom/config';
import type { Logger } from '../logging/logger.ts';

export { type Span, SpanStatusCode } from '@opentelemetry/api';

export interface SpanOptions {
  /** Parent as `traceparent` (W3C Trace Context); the active span if absent. */
  parent?: string | undefined;
  /** Start, ms since the epoch; now if absent. */
  startedAtMs?: number;
  attributes?: Readonly<Record<string, string | number>>;
  kind?: 'server' | 'consumer' | 'internal';
}

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, internal: SpanKind.INTERNAL };
const exportTimeoutMs = 3000;

/**
 * Starts the export of spans to a collector, by OTLP over HTTP as configured in the standard `OTEL_EXPORTER_OTLP_*`
 * variables. Only the API starts traces (per `OTEL_TRACES_SAMPLER`, all by default); polling by other processes is not
 * traced.
 *
 * @returns a function that flushes the spans and stops the export.
 */
export async function startTracing(app: AppName, log: Logger): Promise<() => Promise<void>> {
  const [sdk, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const warn = (message: string): void => log.warn({ reason: message }, 'traces');
  diag.setLogger({ error: warn, warn, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);
  const names = { 'service.namespace': 'darkroom', 'service.name': `darkroom-${app}` };
  const named = resources.resourceFromAttributes(names);
  const given = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.NodeTracerProvider({
    resource: resources.defaultResource().merge(named).merge(given),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter({ timeoutMillis: exportTimeoutMs }))],
    ...(app === 'api' ? {} : { sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOffSampler() }) }),
  });
  provider.register();
  // An unreachable collector loses spans, but does not prevent the stop.
  return () =>
    provider.shutdown().catch((error: unknown) => log.warn({ err: error }, 'could not flush the last traces'));
}

/**
 * Returns the `traceparent` of the active span, to be stored with work that continues elsewhere; undefined without
 * tracing.
 */
export function activeTrace(): string | undefined {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  return carrier['traceparent'];
}

/** Runs `work` in a span, which fails if `work` does. */
export async function inSpan<Result>(
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, options);
  try {
    return await context.with(trace.setSpan(parentOf(options), span), work, undefined, span);
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

/** Starts a span that the caller must `end()`. */
export function startSpan(name: string, options: SpanOptions = {}): Span {
  const { startedAtMs: startTime, attributes, kind = 'internal' } = options;
  const given = { ...(attributes && { attributes }), ...(startTime !== undefined && { startTime }) };
  return trace.getTracer('darkroom').startSpan(name, { kind: kinds[kind], ...given }, parentOf(options));
}

function parentOf({ parent }: SpanOptions): Context {
  return parent === undefined ? context.active() : propagation.extract(context.active(), { traceparent: parent });
}
