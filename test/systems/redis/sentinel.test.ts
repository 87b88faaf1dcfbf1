/** The whole system behind Redis Sentinel: a frozen master is failed over and comes back as a replica. */
import { readEvents } from '@darkroom/store';
import { redisPrograms, runRedisCli, type RedisBehindSentinel, startRedisBehindSentinel } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { submit } from '../../e2e/client.ts';
import { startSystem, stopSystem, type System } from '../../e2e/system.ts';
import { expectEachOnce, submitImages, imagesBySeed, untilEnded } from './many-images.ts';

const seeds = Array.from({ length: 10 }, (_value, index) => index + 1);
const parts = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const;
const password = 'of@the/servers:';
const sentinelPassword = 'of-the-sentinels';
/** Long enough that a server on a busy machine is not failed over by accident: a failover loses writes. */
const downAfterMs = 4000;
let redis: RedisBehindSentinel;
let system: System;

describe.each(redisPrograms)('on %s', (program) => {
  beforeAll(async () => {
    redis = await startRedisBehindSentinel({ program, password, sentinelPassword, downAfterMs });
    system = await startSystem({
      parts,
      environment: { REDIS_URL: redis.url, REDIS_SENTINEL_PASSWORD: sentinelPassword },
    });
  });

  afterAll(async () => {
    if (system !== undefined) await stopSystem(system);
    await redis.stop();
  });

  it(
    'ends each of 20 images once, with its own bytes, when the master freezes (failover)',
    { timeout: 300_000 },
    async () => {
      const expected = await imagesBySeed(system.url, await submitImages(system.url, ['emoji-sd'], seeds));
      const submitted = (await Promise.all([1, 2].map(() => submitImages(system.url, ['emoji-sd'], seeds)))).flat();
      const { id } = submitted[0]!;
      await expect
        .poll(async () => (await readEvents(system.store, id, { after: 0 })).some(({ type }) => type === 'progress'))
        .toBe(true);
      const before = await redis.master();
      before.server.process.kill('SIGSTOP');
      await expect.poll(async () => (await redis.master()).port, { timeout: 60_000 }).not.toBe(before.port);
      await expectEachOnce(system, submitted, expected);
      before.server.process.kill('SIGCONT');
      const auth = ['--no-auth-warning', '-a', password];
      await expect
        .poll(() => runRedisCli(before.port, [...auth, 'role']), { timeout: 60_000, interval: 100 })
        .toMatch(/^slave/);
      const again = await submit(system.url, { prompt: 'a fox', num_inference_steps: 4 });
      expect(await untilEnded(system.url, again)).toBe('succeeded');
    },
  );
});
