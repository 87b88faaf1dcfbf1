import { durationBuckets, type Metrics } from '@darkroom/service';

export type ApiMetrics = ReturnType<typeof createApiMetrics>;

export function createApiMetrics(metrics: Metrics) {
  return {
    httpSeconds: metrics.histogram({
      name: 'darkroom_http_request_seconds',
      help: 'How long requests to the API took until their answer began; route is the pattern of the path, none for what is not there.',
      labels: ['method', 'route', 'status'],
      buckets: durationBuckets,
    }),
    eventStreams: metrics.gauge({
      name: 'darkroom_event_streams',
      help: 'Open connections with server-sent events.',
      labels: ['route'],
    }),
    eventStreamsCut: metrics.counter({
      name: 'darkroom_event_streams_cut_total',
      help: 'Streams of events that were cut, because their reader took nothing for EVENT_STREAM_IDLE_S.',
      labels: ['route'],
    }),
    eventStreamsRefused: metrics.counter({
      name: 'darkroom_event_streams_refused_total',
      help: 'Streams of events that were refused, because their key had EVENT_STREAMS_MAX of them.',
    }),
    submissions: metrics.counter({
      name: 'darkroom_submissions_total',
      help: 'Valid submissions: admitted, duplicate, overloaded (queue full), limited (too many open ones of a key), over-budget (too many bytes of a key), unserved (no worker).',
      labels: ['model', 'outcome'],
    }),
    rateLimited: metrics.counter({
      name: 'darkroom_rate_limited_total',
      help: 'Submissions that were refused because their key had sent too many in a minute.',
    }),
  };
}
