/**
 * OpenTelemetry traces: one request through all processes, as one tree. Everything here does nothing, and loads nothing
 * of the SDK, until `startTracing` was called. No span holds a prompt.
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
  /** The `traceparent` it belongs under (W3C Trace Context); under the active span if absent. */
  parent?: string | undefined;
  /** When it began, in milliseconds since the epoch; now if absent. */
  startedAtMs?: number;
  attributes?: Readonly<Record<string, string | number>>;
  kind?: 'server' | 'consumer' | 'internal';
}

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, internal: SpanKind.INTERNAL };
const exportTimeoutMs = 3000;

/**
 * Sends the spans of this process to a collector, by OTLP over HTTP as the standard `OTEL_EXPORTER_OTLP_*` variables say.
 * Only the API begins traces (by `OTEL_TRACES_SAMPLER`, all of them by default): what the others do of themselves, such as
 * asking an empty queue, is nobody's request. Returns what sends the last of them and ends it.
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
  // What a collector does not take is lost, and stops nobody.
  return () => provider.shutdown().catch((error: unknown) => log.warn({ err: error }, 'the last traces are lost'));
}

/** The `traceparent` of the active span, to be stored with what others will go on with; undefined when nobody traces. */
export function activeTrace(): string | undefined {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  return carrier['traceparent'];
}

/** Runs `work` in a span, which fails when `work` does. */
export async function inSpan<Result>(
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, options);
  try {
    return await context.with(trace.setSpan(parentOf(options), span), () => work(span));
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

/** A span whose end somebody else knows: `end()` it. */
export function startSpan(name: string, options: SpanOptions = {}): Span {
  const { startedAtMs: startTime, attributes, kind = 'internal' } = options;
  const given = { ...(attributes && { attributes }), ...(startTime !== undefined && { startTime }) };
  return trace.getTracer('darkroom').startSpan(name, { kind: kinds[kind], ...given }, parentOf(options));
}

function parentOf({ parent }: SpanOptions): Context {
  return parent === undefined ? context.active() : propagation.extract(context.active(), { traceparent: parent });
}
