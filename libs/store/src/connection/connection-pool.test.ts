import { once } from 'node:events';
import { expect, inject, it, vi } from 'vitest';
import { createConnectionPool } from './connection-pool.ts';

it('forgets a connection that was closed, and closes the others', async () => {
  const pool = createConnectionPool({ url: inject('redisUrl') });
  const [closed, open] = [pool.open(), pool.open()];
  await Promise.all([closed.ping(), open.ping()]);
  closed.disconnect();
  await once(closed, 'end');
  const disconnects = [closed, open].map((redis) => vi.spyOn(redis, 'disconnect'));
  pool.close();
  expect(disconnects.map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
});
