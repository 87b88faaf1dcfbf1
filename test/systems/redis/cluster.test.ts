/** The whole system on a Redis Cluster that loses a master. */
import { readEvents } from '@darkroom/store';
import { redisPrograms, type RedisCluster, startRedisCluster } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stream, submit } from '../../e2e/client.ts';
import { startSystem, stopSystem, type System } from '../../e2e/system.ts';
import { expectEachOnce, submitImages, imagesBySeed, untilEnded } from './many-images.ts';

const seeds = Array.from({ length: 10 }, (_value, index) => index + 1);
const parts = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const;
/** Long enough that a server on a busy machine is not failed over by accident: a failover loses writes. */
const nodeTimeoutMs = 4000;
let cluster: RedisCluster;
let system: System;
/** A model whose keys are on another master than those of emoji-sd. */
let other: string;

async function modelElsewhere(cluster: RedisCluster): Promise<string> {
  const { port } = await cluster.masterOf('{emoji-sd}');
  for (let number = 2; ; number++)
    if ((await cluster.masterOf(`{emoji-sd-${number}}`)).port !== port) return `emoji-sd-${number}`;
}

describe.each(redisPrograms)('on %s', (program) => {
  beforeAll(async () => {
    cluster = await startRedisCluster({ program, nodeTimeoutMs });
    system = await startSystem({ parts, environment: { REDIS_URL: cluster.url } });
    other = await modelElsewhere(cluster);
    await system.start('worker', { MODEL_ID: other, MODEL_DIR: 'models/emoji-sd' });
  });

  afterAll(async () => {
    if (system !== undefined) await stopSystem(system);
    await cluster.stop();
  });

  it('serves and streams requests of models on different masters', async () => {
    const ids = await Promise.all(
      ['emoji-sd', other].map((model) => submit(system.url, { prompt: 'a fox', model, num_inference_steps: 4 })),
    );
    for (const id of ids) {
      const types = (await stream(system.url, id)).map(({ event, data }) => event ?? data);
      expect(types.slice(0, 2)).toEqual(['queued', 'started']);
      expect(types.slice(-2)).toEqual(['succeeded', '[DONE]']);
    }
  });

  it('answers the admin queue, dead request and status routes', async () => {
    const response = await fetch(`${system.url}/admin/queues/api/queues?activeQueue=queue&status=latest`);
    expect(response.status).toBe(200);
    const { queues } = (await response.json()) as { queues: { name: string; isPaused: boolean }[] };
    expect(queues).toContainEqual(expect.objectContaining({ name: 'queue', isPaused: false }));
    for (const path of ['/admin/queues/api/redis/stats', '/admin/dead-requests', '/status'])
      expect([path, (await fetch(`${system.url}${path}`)).status]).toEqual([path, 200]);
  });

  it(
    'ends each of 20 images once, with its own bytes, when a master is killed (failover)',
    { timeout: 300_000 },
    async () => {
      const expected = await imagesBySeed(system.url, await submitImages(system.url, ['emoji-sd'], seeds));
      const submitted = await submitImages(system.url, ['emoji-sd', other], seeds);
      const { id } = submitted[0]!;
      await expect
        .poll(async () => (await readEvents(system.store, id, { after: 0 })).some(({ type }) => type === 'progress'))
        .toBe(true);
      const before = await cluster.masterOf('{emoji-sd}');
      await before.server.kill();
      await expectEachOnce(system, submitted, expected);
      expect((await cluster.masterOf('{emoji-sd}')).port).not.toBe(before.port);
      // The batch-former, the janitor and the subscription of the stream have moved to the new master.
      const again = await submit(system.url, { prompt: 'a fox', model: 'emoji-sd', num_inference_steps: 4 });
      expect(await untilEnded(system.url, again)).toBe('succeeded');
    },
  );
});
