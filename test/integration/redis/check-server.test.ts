/** The check of Redis settings at startup: which servers are refused or warned about. */
import { checkServer, connectStore, type ServerCheck } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

async function verdictOn(args: readonly string[], aclUser?: readonly string[]): Promise<ServerCheck> {
  const redis = await startPrivateRedis(args);
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url });
  onTestFinished(() => store.close());
  if (aclUser !== undefined) await store.redis.call('ACL', 'SETUSER', 'default', ...aclUser);
  return checkServer(store);
}

const durable = ['--appendonly', 'yes'];

it('accepts a Redis with append-only persistence and noeviction without warnings', async () => {
  expect(await verdictOn([...durable, '--maxmemory', '100mb'])).toEqual({ refusal: undefined, warnings: [] });
});

it.each(['allkeys-lru', 'volatile-lru', 'volatile-ttl', 'allkeys-random'])(
  'refuses maxmemory-policy %s when maxmemory is set, and names the policy to use',
  async (policy) => {
    const { refusal } = await verdictOn([...durable, '--maxmemory', '100mb', '--maxmemory-policy', policy]);
    expect(refusal).toContain(`maxmemory-policy of this Redis is ${policy}`);
    expect(refusal).toContain('noeviction');
  },
);

it('warns of an evicting maxmemory-policy while maxmemory is not set', async () => {
  const { refusal, warnings } = await verdictOn([...durable, '--maxmemory-policy', 'allkeys-lru']);
  expect(refusal).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining('allkeys-lru')]);
});

it('warns of a Redis without append-only persistence', async () => {
  expect((await verdictOn([])).warnings).toEqual([expect.stringContaining('append-only')]);
});

it('warns when the Redis user may not run INFO', async () => {
  const { refusal, warnings } = await verdictOn(durable, ['-info']);
  expect(refusal).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining('INFO')]);
});
