/**
 * The one table of settings. `loadConfig`, its error messages and docs/configuration.md are all made from it; after a
 * change run `node tools/write-configuration-doc.mjs`.
 */
import { appNames, defineSetting } from './setting.ts';
import {
  address,
  httpUrl,
  oneOf,
  password,
  path,
  plainName,
  redisUrl,
  trueOrFalse,
  wholeNumber,
} from './setting-kinds.ts';
import { apiSettings } from './api-settings.ts';
import { hubSettings } from './hub-settings.ts';
import { workerSettings } from './worker-settings.ts';

const commonSettings = {
  redisUrl: defineSetting({
    variable: 'REDIS_URL',
    kind: redisUrl,
    default: 'redis://127.0.0.1:6379',
    doc: 'The Redis or Valkey that holds the queue: [redis.md](redis.md). `npm start` finds or starts a private one when this is not set.',
    apps: appNames,
  }),
  redisSentinelPassword: defineSetting({
    variable: 'REDIS_SENTINEL_PASSWORD',
    kind: password,
    default: undefined,
    defaultDoc: 'none',
    doc: 'What the Sentinels ask for, where they ask for one. What `REDIS_URL` holds is for the Redis behind them.',
    apps: appNames,
    isSecret: true,
  }),
  redisPrefix: defineSetting({
    variable: 'REDIS_PREFIX',
    kind: plainName,
    default: 'darkroom',
    doc: 'What every key starts with, so that several systems can share one Redis.',
    apps: appNames,
  }),
  logLevel: defineSetting({
    variable: 'LOG_LEVEL',
    kind: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    doc: 'The least serious log line that is written.',
    apps: appNames,
  }),
  logFile: defineSetting({
    variable: 'LOG_FILE',
    kind: path,
    default: undefined,
    defaultDoc: 'none',
    doc: 'A file that gets every log line as JSON, besides standard output. All processes may share one.',
    apps: appNames,
  }),
  metricsPort: defineSetting({
    variable: 'METRICS_PORT',
    kind: wholeNumber({ min: 0, max: 65_535 }),
    default: undefined,
    defaultDoc: 'none: not served',
    doc: 'The TCP port of `/metrics`, `/live` and `/ready`, one for each process; 0 takes any free one, which the log names. `npm start` counts up from it: [metrics.md](metrics.md).',
    apps: appNames,
  }),
  metricsHost: defineSetting({
    variable: 'METRICS_HOST',
    kind: address,
    default: '127.0.0.1',
    doc: 'The address these are served on. Whoever reaches it can read how busy the system is, and no prompts.',
    apps: appNames,
  }),
  tracesUrl: defineSetting({
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    kind: httpUrl,
    default: undefined,
    defaultDoc: 'none: no traces',
    doc: "Where an OpenTelemetry collector takes traces (OTLP over HTTP): [metrics.md](metrics.md#traces). OpenTelemetry's other `OTEL_*` variables work as well.",
    apps: appNames,
  }),
  resultTtlS: defineSetting({
    variable: 'RESULT_TTL_S',
    kind: wholeNumber({ min: 1, max: 2_592_000 }),
    default: '3600',
    unit: 's',
    doc: "How long a request's events and pictures can be fetched after it has ended.",
    apps: appNames,
  }),
  maxAttempts: defineSetting({
    variable: 'MAX_ATTEMPTS',
    kind: wholeNumber({ min: 2, max: 100 }),
    default: '3',
    unit: 'deliveries',
    doc: 'How often a request is handed to a worker before it counts as the one that kills workers and is `failed`. A delivery in which it got further than ever does not count.',
    apps: appNames,
  }),
};

const dispatchSettings = {
  batchMaxSize: defineSetting({
    variable: 'BATCH_MAX_SIZE',
    kind: wholeNumber({ min: 1, max: 256 }),
    default: '8',
    unit: 'rows',
    doc: 'The most rows (pictures) that share a step.',
    apps: ['batch-former', 'worker'],
  }),
  batchTimeoutMs: defineSetting({
    variable: 'BATCH_TIMEOUT_MS',
    kind: wholeNumber({ min: 0, max: 60_000 }),
    default: '10',
    unit: 'ms',
    doc: 'How long a batch may wait to fill up while all workers are busy. An idle worker never waits for it.',
    apps: ['batch-former'],
  }),
  enablePromptBatching: defineSetting({
    variable: 'ENABLE_PROMPT_BATCHING',
    kind: trueOrFalse,
    default: 'true',
    doc: 'Whether requests share steps at all; `false` runs one request at a time.',
    apps: ['batch-former'],
  }),
  batchLookahead: defineSetting({
    variable: 'BATCH_LOOKAHEAD',
    kind: wholeNumber({ min: 0, max: 256 }),
    default: '0',
    unit: 'requests',
    doc: 'Requests beyond what workers can take now that may overtake others of another shape, so that batches of one shape fill up. Since rows join at every step it is seldom worth that.',
    apps: ['batch-former'],
  }),
  heartbeatMs: defineSetting({
    variable: 'HEARTBEAT_MS',
    kind: wholeNumber({ min: 10, max: 60_000 }),
    default: '1000',
    unit: 'ms',
    doc: 'How often a worker says that it lives.',
    apps: ['worker', 'janitor'],
  }),
};

const janitorSettings = {
  workerTtlMs: defineSetting({
    variable: 'WORKER_TTL_MS',
    kind: wholeNumber({ min: 50, max: 600_000 }),
    default: '3000',
    unit: 'ms',
    doc: 'A worker that has not been heard of for this long is dead. Only time in which janitors swept counts, so an outage of Redis kills nobody. Must be more than twice `HEARTBEAT_MS`.',
    apps: ['janitor'],
  }),
  sweepIntervalMs: defineSetting({
    variable: 'SWEEP_INTERVAL_MS',
    kind: wholeNumber({ min: 10, max: 60_000 }),
    default: '500',
    unit: 'ms',
    doc: 'The pause between two sweeps for dead workers and passed deadlines.',
    apps: ['janitor'],
  }),
  leakSweepIntervalS: defineSetting({
    variable: 'LEAK_SWEEP_INTERVAL_S',
    kind: wholeNumber({ min: 1, max: 86_400 }),
    default: '60',
    unit: 's',
    doc: 'The pause between two sweeps for keys that lost their time to live.',
    apps: ['janitor'],
  }),
};

const webhookSettings = {
  lockMs: defineSetting({
    variable: 'LOCK_MS',
    kind: wholeNumber({ min: 100, max: 600_000 }),
    default: '5000',
    unit: 'ms',
    doc: 'How long a webhook that is being sent stays with a sender that no longer says that it sends it.',
    apps: ['webhook-sender'],
  }),
  webhookAllowPrivate: defineSetting({
    variable: 'WEBHOOK_ALLOW_PRIVATE',
    kind: trueOrFalse,
    default: 'false',
    doc: 'Whether webhooks may go to private, loopback and other addresses that are not public. Whoever may submit can then make this server call its neighbours.',
    apps: ['api', 'webhook-sender'],
  }),
  webhookProgressIntervalMs: defineSetting({
    variable: 'WEBHOOK_PROGRESS_INTERVAL_MS',
    kind: wholeNumber({ min: 0, max: 3_600_000 }),
    default: '1000',
    unit: 'ms',
    doc: 'The least time between two `progress` webhooks of a request.',
    apps: ['api'],
  }),
};

/** Every setting there is, by the name it has in a configuration. */
export const settings = {
  ...commonSettings,
  ...apiSettings,
  ...dispatchSettings,
  ...workerSettings,
  ...hubSettings,
  ...janitorSettings,
  ...webhookSettings,
};
