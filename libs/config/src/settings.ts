/**
 * The one table of settings. `loadConfig`, its error messages and docs/configuration.md are all made from it; after a
 * change run `node tools/write-configuration-doc.mjs`.
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
  longSecret,
  oneOf,
  password,
  path,
  plainName,
} from './setting-kinds.ts';
import { redisUrl, trueOrFalse, wholeNumber } from './setting-kinds.ts';
import { workerSettings } from './worker-settings.ts';

const everywhere = readBy(...appNames);
const former = readBy('batch-former');
const janitor = readBy('janitor');
const model = readBy('model');

const commonSettings = {
  redisUrl: everywhere('REDIS_URL', redisUrl, {
    default: 'redis://127.0.0.1:6379',
    doc: 'The Redis or Valkey that holds the queue: [redis.md](redis.md). `npm start` finds or starts a private one when this is not set.',
  }),
  redisSentinelPassword: everywhere('REDIS_SENTINEL_PASSWORD', password, {
    doc: 'What the Sentinels ask for, where they ask for one. What `REDIS_URL` holds is for the Redis behind them.',
  }),
  redisPrefix: everywhere('REDIS_PREFIX', plainName, {
    default: 'darkroom',
    doc: 'What every key starts with, so that several systems can share one Redis.',
  }),
  logLevel: everywhere('LOG_LEVEL', oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), {
    default: 'info',
    doc: 'The least serious log line that is written.',
  }),
  logFile: everywhere('LOG_FILE', path, {
    doc: 'A file that gets every log line as JSON, besides standard output. All processes may share one.',
  }),
  metricsPort: everywhere('METRICS_PORT', wholeNumber(0, 65_535), {
    absent: 'none: not served',
    doc: 'The TCP port of `/metrics`, `/live` and `/ready`, one for each process; 0 takes any free one, which the log names. `npm start` counts up from it: [metrics.md](metrics.md).',
  }),
  metricsHost: everywhere('METRICS_HOST', address, {
    default: '127.0.0.1',
    doc: 'The address these are served on. Whoever reaches it can read how busy the system is, and no prompts.',
  }),
  tracesUrl: everywhere('OTEL_EXPORTER_OTLP_ENDPOINT', httpUrl, {
    absent: 'none: no traces',
    doc: "Where an OpenTelemetry collector takes traces (OTLP over HTTP): [metrics.md](metrics.md#traces). OpenTelemetry's other `OTEL_*` variables work as well.",
  }),
  resultTtlS: everywhere('RESULT_TTL_S', wholeNumber(1, 2_592_000, 's'), {
    default: '3600',
    doc: "How long a request's events and pictures can be fetched after it has ended.",
  }),
  maxAttempts: everywhere('MAX_ATTEMPTS', wholeNumber(2, 100, 'deliveries'), {
    default: '3',
    doc: 'How often a request is handed to a worker before it counts as the one that kills workers and is `failed`. A delivery in which it got further than ever does not count.',
  }),
};

const bytesSettings = {
  bytesUrl: readBy('api', 'worker', 'janitor')('BYTES_URL', bytesUrl, {
    absent: 'in Redis',
    doc: 'Where pictures, previews, checkpoints of pictures and what came with requests are kept, in place of Redis: a directory that all processes share, or a bucket. The same for all: [bytes.md](bytes.md).',
  }),
};

const linkSettings = {
  linkSecret: readBy('api', 'webhook-sender')('LINK_SECRET', longSecret, {
    absent: 'a random one that the processes share through Redis',
    doc: 'What links to pictures are signed with, which work without an API key: [api-keys.md](api-keys.md). The same for all. Another one makes all links void.',
  }),
};

const dispatchSettings = {
  batchMaxSize: readBy('batch-former', 'worker')('BATCH_MAX_SIZE', wholeNumber(1, 256, 'rows'), {
    default: '8',
    doc: 'The most rows (pictures) that share a step.',
  }),
  batchTimeoutMs: former('BATCH_TIMEOUT_MS', wholeNumber(0, 60_000, 'ms'), {
    default: '10',
    doc: 'How long a batch may wait to fill up while all workers are busy. An idle worker never waits for it.',
  }),
  enablePromptBatching: former('ENABLE_PROMPT_BATCHING', trueOrFalse, {
    default: 'true',
    doc: 'Whether requests share steps at all; `false` runs one request at a time.',
  }),
  batchLookahead: former('BATCH_LOOKAHEAD', wholeNumber(0, 256, 'requests'), {
    default: '0',
    doc: 'Requests beyond what workers can take now that may overtake others of another shape, so that batches of one shape fill up. Since rows join at every step it is seldom worth that.',
  }),
  heartbeatMs: readBy('worker', 'janitor')('HEARTBEAT_MS', wholeNumber(10, 60_000, 'ms'), {
    default: '1000',
    doc: 'How often a worker says that it lives.',
  }),
};

/** By the names that the hub's own tools use. */
const hubSettings = {
  hubToken: model('HF_TOKEN', hubToken, {
    doc: 'Your access token at the Hugging Face hub, for private models and those whose licence you accepted there.',
  }),
  hubEndpoint: model('HF_ENDPOINT', hubUrl, {
    default: 'https://huggingface.co',
    doc: 'The hub, or a mirror of it, that models are downloaded from.',
  }),
};

const janitorSettings = {
  workerTtlMs: janitor('WORKER_TTL_MS', wholeNumber(50, 600_000, 'ms'), {
    default: '3000',
    doc: 'A worker that has not been heard of for this long is dead. Only time in which janitors swept counts, so an outage of Redis kills nobody. Must be more than twice `HEARTBEAT_MS`.',
  }),
  sweepIntervalMs: janitor('SWEEP_INTERVAL_MS', wholeNumber(10, 60_000, 'ms'), {
    default: '500',
    doc: 'The pause between two sweeps for dead workers and passed deadlines.',
  }),
  modelShards: janitor('MODEL_SHARDS', wholeNumber(1, maxShards), {
    default: '1',
    doc: 'Queues that the requests of each model are spread over, each in a slot of a Redis Cluster of its own: [redis.md](redis.md#shards). Give at least as many workers.',
  }),
  leakSweepIntervalS: janitor('LEAK_SWEEP_INTERVAL_S', wholeNumber(1, 86_400, 's'), {
    default: '60',
    doc: 'The pause between two sweeps for keys that lost their time to live.',
  }),
};

const webhookSettings = {
  lockMs: readBy('webhook-sender')('LOCK_MS', wholeNumber(100, 600_000, 'ms'), {
    default: '5000',
    doc: 'How long a webhook that is being sent stays with a sender that no longer says that it sends it.',
  }),
  webhookAllowPrivate: readBy('api', 'webhook-sender')('WEBHOOK_ALLOW_PRIVATE', trueOrFalse, {
    default: 'false',
    doc: 'Whether webhooks may go to private, loopback and other addresses that are not public. Whoever may submit can then make this server call its neighbours.',
  }),
  webhookProgressIntervalMs: readBy('api')('WEBHOOK_PROGRESS_INTERVAL_MS', wholeNumber(0, 3_600_000, 'ms'), {
    default: '1000',
    doc: 'The least time between two `progress` webhooks of a request.',
  }),
};

/** Every setting there is, by the name it has in a configuration. */
export const settings = {
  ...commonSettings,
  ...bytesSettings,
  ...linkSettings,
  ...apiSettings,
  ...dispatchSettings,
  ...workerSettings,
  ...hubSettings,
  ...janitorSettings,
  ...webhookSettings,
};
