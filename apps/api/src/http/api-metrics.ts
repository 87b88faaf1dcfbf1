import { durationBuckets, type Metrics } from '@darkroom/service';

export type ApiMetrics = ReturnType<typeof createApiMetrics>;

export function createApiMetrics(metrics: Metrics) {
  return {
    httpSeconds: metrics.histogram({
      name: 'darkroom_http_request_seconds',
      help: 'Time of API requests until the answer began; route is the pattern of the path, none for unknown paths.',
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
      help: 'Event streams that were cut because the client read nothing for a minute.',
      labels: ['route'],
    }),
    eventStreamsRefused: metrics.counter({
      name: 'darkroom_event_streams_refused_total',
      help: 'Event streams that were rejected because their key had 5,000 open.',
    }),
    submissions: metrics.counter({
      name: 'darkroom_submissions_total',
      help: 'Valid submissions: admitted, duplicate, overloaded (queue full), limited (open requests of a key), over-budget (stored bytes of a key), unserved (no worker).',
      labels: ['model', 'outcome'],
    }),
    rateLimited: metrics.counter({
      name: 'darkroom_rate_limited_total',
      help: 'Submissions that were rejected because their key exceeded its requests per minute.',
    }),
  };
}
