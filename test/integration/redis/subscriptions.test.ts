/** Subscriptions that Redis refuses for a while (ACL). */
import { connectStore, createEventHub } from '@darkroom/store';
import { freePorts, startRedisServer } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

it('subscribes again after Redis refused the subscription with NOPERM', async () => {
  const [port] = await freePorts(1);
  const server = await startRedisServer({ args: () => ['--port', `${port}`, '--bind', '127.0.0.1'] });
  onTestFinished(() => server.stop());
  const admin = connectStore({ url: `redis://127.0.0.1:${port}` });
  onTestFinished(() => admin.close());
  await admin.redis.call('ACL', 'SETUSER', 'former', 'on', '>secret', '~*', '+@all', 'resetchannels');
  const store = connectStore({ url: `redis://former:secret@127.0.0.1:${port}` });
  onTestFinished(() => store.close());
  const wakeups = createEventHub(store);
  let wakes = 0;
  await expect(wakeups.listen('tiny', () => wakes++)).rejects.toThrow('NOPERM');
  await admin.redis.call('ACL', 'SETUSER', 'former', 'allchannels');
  await wakeups.listen('tiny', () => wakes++);
  await admin.redis.publish(admin.keysOf('tiny').wakeup, '');
  await expect.poll(() => wakes).toBe(1);
});
