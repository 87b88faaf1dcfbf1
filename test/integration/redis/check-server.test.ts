/** Which servers are trusted with jobs. */
import { checkServer, connectStore, type ServerVerdict } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

async function verdictOn(args: readonly string[], aclUser?: readonly string[]): Promise<ServerVerdict> {
  const redis = await startPrivateRedis(args);
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url });
  onTestFinished(() => store.close());
  if (aclUser !== undefined) await store.redis.call('ACL', 'SETUSER', 'default', ...aclUser);
  return checkServer(store);
}

const durable = ['--appendonly', 'yes'];

it('one that keeps everything passes without a word', async () => {
  expect(await verdictOn([...durable, '--maxmemory', '100mb'])).toEqual({ refusal: undefined, warnings: [] });
});

it.each(['allkeys-lru', 'volatile-lru', 'volatile-ttl', 'allkeys-random'])(
  'refuses %s where memory is limited, and says why',
  async (policy) => {
    const { refusal } = await verdictOn([...durable, '--maxmemory', '100mb', '--maxmemory-policy', policy]);
    expect(refusal).toContain(`maxmemory-policy of this Redis is ${policy}`);
    expect(refusal).toContain('noeviction');
  },
);

it('warns of a policy that would lose jobs as soon as memory is limited', async () => {
  const { refusal, warnings } = await verdictOn([...durable, '--maxmemory-policy', 'allkeys-lru']);
  expect(refusal).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining('allkeys-lru')]);
});

it('warns of a Redis that forgets at a restart', async () => {
  expect((await verdictOn([])).warnings).toEqual([expect.stringContaining('append-only')]);
});

it('warns when it may not look', async () => {
  const { refusal, warnings } = await verdictOn(durable, ['-info']);
  expect(refusal).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining('INFO')]);
});
