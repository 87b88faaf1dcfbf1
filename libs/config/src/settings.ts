/**
 * The table of settings. `loadConfig`, its error messages and docs/configuration.md derive from it; after a change run
 * `npm run build && node tools/write-configuration-doc.mjs`.
 */
import { maxShards } from '@darkroom/core';
import { apiSettings } from './api-settings.ts';
import { appNames, readBy } from './setting.ts';
import {
  address,
  bytesUrl,
  httpUrl,
  hubToken,
  hubUrl,
  oneOf,
  password,
  path,
  plainName,
  publicUrl,
} from './setting-kinds.ts';
import { redisUrl, trueOrFalse, wholeNumber } from './setting-kinds.ts';
import { workerSettings } from './worker-settings.ts';

const everywhere = readBy(...appNames);
const former = readBy('batch-former');
const janitor = readBy('janitor');
const model = readBy('model');

/** Interval of heartbeats, ms: less than half of WORKER_TTL_MS, so that one late heartbeat kills no worker. */
export const heartbeatMs = 1000;

/** All settings by their names in a configuration. */
export const settings = {
  redisUrl: everywhere('REDIS_URL', redisUrl, {
    default: 'redis://127.0.0.1:6379',
    doc: 'Redis or Valkey server of the queue: [redis.md](redis.md). `npm start` finds or starts a private one when this is not set.',
  }),
  redisSentinelPassword: everywhere('REDIS_SENTINEL_PASSWORD', password, {
    doc: 'Password of the Sentinels, if they require one. The password in `REDIS_URL` is for the Redis behind them.',
  }),
  redisPrefix: everywhere('REDIS_PREFIX', plainName, {
    default: 'darkroom',
    doc: 'Prefix of all keys, so that several systems can share one Redis.',
  }),
  logLevel: everywhere('LOG_LEVEL', oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), {
    default: 'info',
    doc: 'Minimum level of log lines.',
  }),
  logFile: everywhere('LOG_FILE', path, {
    doc: 'File to which every log line is appended as JSON, in addition to standard output. All processes may share one.',
  }),
  metricsPort: everywhere('METRICS_PORT', wholeNumber(0, 65_535), {
    absent: 'none: not served',
    doc: 'TCP port of `/metrics`, `/live` and `/ready`, per process; 0 takes any free one, which is logged. `npm start` counts up from it: [metrics.md](metrics.md).',
  }),
  metricsHost: everywhere('METRICS_HOST', address, {
    default: '127.0.0.1',
    doc: "Address of the metrics server. It exposes the system's load, but no prompts.",
  }),
  tracesUrl: everywhere('OTEL_EXPORTER_OTLP_ENDPOINT', httpUrl, {
    absent: 'none: no traces',
    doc: "URL of an OpenTelemetry collector for traces (OTLP over HTTP): [metrics.md](metrics.md#traces). OpenTelemetry's other `OTEL_*` variables work as well.",
  }),
  resultTtlS: everywhere('RESULT_TTL_S', wholeNumber(1, 2_592_000, 's'), {
    default: '3600',
    doc: "Time for which a request's events and results can be fetched after its end.",
  }),
  bytesUrl: readBy('api', 'worker', 'janitor')('BYTES_URL', bytesUrl, {
    absent: 'in Redis',
    doc: 'Blob store for images, previews, checkpoints of images and attachments, instead of Redis: a directory shared by all processes, or a bucket. Must be the same for all: [bytes.md](bytes.md).',
  }),
  publicUrl: readBy('api', 'webhook-sender')('PUBLIC_URL', publicUrl, {
    absent: 'none: derived from `Host` and the headers of proxies',
    doc: 'URL of the API for clients behind a proxy, possibly with a path, which the proxy strips: `https://example.com/darkroom` ([reverse-proxies.md](reverse-proxies.md)). Makes the URLs in webhooks absolute.',
  }),
  ...apiSettings,
  batchMaxSize: readBy('batch-former', 'worker')('BATCH_MAX_SIZE', wholeNumber(1, 256, 'rows'), {
    default: '8',
    doc: 'Max. rows (images) per step; 1 for one at a time, as `ENABLE_PROMPT_BATCHING=false`.',
  }),
  batchTimeoutMs: former('BATCH_TIMEOUT_MS', wholeNumber(0, 60_000, 'ms'), {
    default: '10',
    doc: 'Max. time a batch waits to fill up while all workers are busy. Idle workers get requests at once.',
  }),
  ...workerSettings,
  // Named as in the hub's own tools.
  hubToken: model('HF_TOKEN', hubToken, {
    doc: 'Access token of the Hugging Face hub, for private models and those with a licence to accept.',
  }),
  hubEndpoint: model('HF_ENDPOINT', hubUrl, {
    default: 'https://huggingface.co',
    doc: 'Hub, or a mirror of it, to download models from.',
  }),
  workerTtlMs: janitor('WORKER_TTL_MS', wholeNumber(2.5 * heartbeatMs, 600_000, 'ms'), {
    default: '3000',
    doc: 'A worker without a heartbeat for this long is dead. Only time in which janitors sweep counts, so an outage of Redis expires no lease. Workers send one each second.',
  }),
  modelShards: janitor('MODEL_SHARDS', wholeNumber(1, maxShards), {
    default: '1',
    doc: 'Number of queues per model, each in its own slot of a Redis Cluster: [redis.md](redis.md#shards). Needs at least as many workers.',
  }),
  webhookAllowPrivate: readBy('api', 'webhook-sender')('WEBHOOK_ALLOW_PRIVATE', trueOrFalse, {
    default: 'false',
    doc: 'Whether webhooks may go to private, loopback and other non-public addresses. Clients can then make this server call others in your network.',
  }),
};
