import { expect, it } from 'vitest';

type SecondWorker = (redis: { url: string; part?: object }, environment: Record<string, string>) => string;
const { secondWorker } = (await import(new URL('../../../tools/start/second-worker.mjs', import.meta.url).href)) as {
  secondWorker: SecondWorker;
};

const privateRedis = { url: 'unix:///a/redis.sock', part: {} };
const start = 'node apps/worker/dist/main.js';

it.each([
  ['only REDIS_URL when nothing is set', privateRedis, {}, `REDIS_URL=unix:///a/redis.sock ${start}`],
  [
    'BYTES_URL and RESULT_TTL_S',
    privateRedis,
    { BYTES_URL: 'file:///var/my files', RESULT_TTL_S: '60', PORT: '1' },
    `REDIS_URL=unix:///a/redis.sock BYTES_URL='file:///var/my files' RESULT_TTL_S=60 ${start}`,
  ],
  [
    'UPSTREAM_URL, but not UPSTREAM_KEY',
    privateRedis,
    { EXECUTOR: 'http', MODEL_ID: 'm', UPSTREAM_URL: 'http://127.0.0.1:1/v1', UPSTREAM_KEY: 'secret' },
    `REDIS_URL=unix:///a/redis.sock MODEL_ID=m EXECUTOR=http UPSTREAM_URL=http://127.0.0.1:1/v1 ${start}   # with the same UPSTREAM_KEY`,
  ],
  [
    'JUDGE and SAFETY_CHECKER, but no REDIS_URL that may hold a password',
    { url: 'redis://:secret@host' },
    { JUDGE: './judge.mjs', SAFETY_CHECKER: 'refuse' },
    `JUDGE=./judge.mjs SAFETY_CHECKER=refuse ${start}   # with the same REDIS_URL`,
  ],
])('the command for a second worker contains %s', (_what, redis, environment, command) => {
  expect(secondWorker(redis, environment)).toBe(command);
});
