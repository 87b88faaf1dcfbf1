import type { StoreConnection } from '@darkroom/store';
import { expect, it } from 'vitest';
import { OrderedWrites } from './ordered-writes.ts';

const store = { isClosed: false } as StoreConnection;

/** A Redis that takes what comes, or refuses it. */
function createServer() {
  const server = {
    refusesWith: undefined as string | undefined,
    taken: [] as number[],
    tries: 0,
    write: (number: number) => async (): Promise<number> => {
      server.tries++;
      if (server.refusesWith !== undefined) throw new Error(server.refusesWith);
      return server.taken.push(number);
    },
  };
  return server;
}

it('does not wait for an answer', async () => {
  const writes = new OrderedWrites(store, Date.now() + 60_000);
  const server = createServer();
  const sent = [1, 2, 3].map((number) => writes.send(server.write(number)));
  expect(server.tries).toBe(3);
  expect(await Promise.all(sent)).toEqual([1, 2, 3]);
});

it('keeps the order of what could not be taken for a while, and of what came meanwhile', async () => {
  const writes = new OrderedWrites(store, Date.now() + 60_000);
  const server = createServer();
  server.refusesWith = 'NOREPLICAS Not enough good replicas to write.';
  const first = [1, 2, 3].map((number) => writes.send(server.write(number)));
  await expect.poll(() => server.tries).toBeGreaterThan(3);
  server.refusesWith = undefined;
  const later = [4, 5].map((number) => writes.send(server.write(number)));
  await Promise.all([...first, ...later]);
  expect(server.taken).toEqual([1, 2, 3, 4, 5]);
  const tries = server.tries;
  const free = [6, 7].map((number) => writes.send(server.write(number)));
  expect(server.tries).toBe(tries + 2);
  await Promise.all(free);
});

it('tells of other errors at once, and goes on', async () => {
  const writes = new OrderedWrites(store, Date.now() + 60_000);
  const server = createServer();
  server.refusesWith = 'NOPERM';
  await expect(writes.send(server.write(1))).rejects.toThrow('NOPERM');
  server.refusesWith = undefined;
  await writes.send(server.write(2));
  await writes.answered();
  expect(server.taken).toEqual([2]);
});

it('gives up when the time is over', async () => {
  const writes = new OrderedWrites(store, 0);
  const server = createServer();
  server.refusesWith = 'CLUSTERDOWN';
  const refused = [1, 2].map((number) => writes.send(server.write(number)));
  expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await writes.answered();
});
