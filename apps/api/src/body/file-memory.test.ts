import { setMaxListeners } from 'node:events';
import { expect, it } from 'vitest';
import { FileMemory } from './file-memory.ts';

const never = new AbortController().signal;
setMaxListeners(0, never);
const day = 86_400_000;

function openMemory({ waitMs = day } = {}) {
  const memory = new FileMemory({ maxBytes: 100, maxOwnerBytes: 50, waitMs });
  const open = (maxBytes: number, owner = '', signal = never) => memory.open(maxBytes, { owner, signal });
  return { memory, open };
}

/** Returns true if a promise is settled after all due callbacks have run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  await new Promise(setImmediate);
  return settled;
}

it('counts bytes as they arrive: opened files reserve no memory', async () => {
  const { open } = openMemory();
  for (let count = 0; count < 40; count++) await open(50).grow(1);
  const other = open(50);
  await other.grow(50);
  other.complete(20);
  await open(30).grow(30);
  expect(other.bytes).toBe(20);
});

it('a file waits for memory that others free, and takes only what it needs', async () => {
  const { open } = openMemory();
  const first = open(80);
  await first.grow(80);
  first.complete(80);
  const second = open(60);
  await second.grow(20);
  const growing = second.grow(40);
  expect(await isSettled(growing)).toBe(false);
  first.free();
  first.free();
  await growing;
  await open(40).grow(40);
});

it('files that arrive at the same time do not deadlock', async () => {
  const { open } = openMemory();
  // An idle file changes nothing.
  open(1);
  const arrive = async (): Promise<void> => {
    const file = open(60);
    for (let count = 0; count < 6; count++) {
      await file.grow(10);
      await new Promise(setImmediate);
    }
    file.complete(60);
    setImmediate(() => file.free());
  };
  await Promise.all(Array.from({ length: 20 }, () => arrive()));
  const all = open(100);
  await all.grow(100);
  expect(all.bytes).toBe(100);
});

it('limits the memory of one owner, whose files wait for each other', async () => {
  const { open } = openMemory();
  const first = open(100, 'alice');
  await first.grow(50);
  // The file is larger than its owner's limit, and gets the whole limit.
  await first.grow(50);
  const second = open(10, 'alice');
  const growing = second.grow(10);
  expect(await isSettled(growing)).toBe(false);
  await open(50, 'bob').grow(50);
  first.free();
  await growing;
});

it('a wait ends on timeout, on disconnect, and at once if the request holds another file', async () => {
  const { memory, open } = openMemory({ waitMs: 20 });
  await open(100).grow(100);
  await expect(open(1).grow(1)).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  const client = new AbortController();
  const gone = open(1, '', client.signal).grow(1);
  client.abort();
  await expect(gone).rejects.toMatchObject({ code: 'client_gone' });
  await expect(open(1, '', client.signal).grow(1)).rejects.toMatchObject({ code: 'client_gone' });
  const beside = memory.open(1, { owner: '', signal: never, holdsOtherFile: true });
  await expect(beside.grow(1)).rejects.toMatchObject({ status: 503 });
});

it('a file that is freed while it waits gets no memory', async () => {
  const { open } = openMemory();
  const all = open(100);
  await all.grow(100);
  const file = open(10);
  const growing = file.grow(10);
  file.free();
  await expect(growing).rejects.toMatchObject({ status: 503 });
  all.free();
  await open(100).grow(100);
});
