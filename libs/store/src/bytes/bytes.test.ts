/** Bytes of requests outside Redis: in a directory here, in a bucket in test/systems/bytes.test.ts. */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OutputInfo } from '@darkroom/core';
import { allKeys, describeByteStore, openTestStore, seedRunning, writeNow } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  BytesSweeper,
  type Delivery,
  encodeStoredValue,
  dropRequest,
  storeBytes,
  newRequestId,
  openBytes,
  readEvents,
  readOutput,
  readOutputChunk,
  readPreview,
  readResumePoint,
  splitOutput,
  type StoreConnection,
} from '../index.ts';

describe('a directory', () => {
  let path = '';
  beforeAll(async () => void (path = await mkdtemp(join(tmpdir(), 'darkroom-bytes-'))));
  afterAll(() => rm(path, { recursive: true }));
  describeByteStore(() => ({ kind: 'directory', path }));

  it('rejects with `unavailable` if it cannot be written, and leaves no partial file', async () => {
    await writeFile(join(path, 'file'), '');
    const bytes = openBytes({ kind: 'directory', path: join(path, 'file') });
    await expect(bytes.put('a/work/b', Buffer.from('c'))).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('is readable only by its user whatever the umask', async () => {
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    const bytes = openBytes({ kind: 'directory', path: join(path, 'new') });
    await bytes.put('p/id/inputs/t.image', Buffer.from('private'));
    const modes = ['', 'p', 'p/id', 'p/id/inputs', 'p/id/inputs/t.image'].map(async (name) => {
      return ((await stat(join(path, 'new', name))).mode & 0o777).toString(8);
    });
    expect(await Promise.all(modes)).toEqual(['700', '700', '700', '700', '600']);
  });

  it('writes into a folder that is removed concurrently because it is empty', async () => {
    const bytes = openBytes({ kind: 'directory', path });
    const puts = Array.from({ length: 200 }, async (_value, index) => {
      await bytes.put(`p/id/inputs/${index}`, Buffer.from('a'));
      await bytes.remove([`p/id/inputs/${index}`]);
    });
    await expect(Promise.all(puts)).resolves.toHaveLength(200);
  });
});

const of = { done: 1, total: 4 };
const image = Buffer.from(Array.from({ length: 1000 }, (_value, index) => index % 251));

/** Opens a store whose bytes go to a temporary directory, with a running request. */
async function openWithBytes({ madeAgoMs = 0 }: { madeAgoMs?: number } = {}) {
  const path = await mkdtemp(join(tmpdir(), 'darkroom-bytes-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  const store = openTestStore({ bytes: { kind: 'directory', path } });
  const filesOf = async (): Promise<string[]> => {
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => `${parentPath.slice(path.length + 1)}/${name}`);
  };
  const id = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() - madeAgoMs });
  return { store, path, filesOf, ...(await seedRunning(store, { id, options: { ownerMaxBytes: 1e9 } })) };
}

async function writeOutput(store: StoreConnection, delivery: Delivery) {
  const stored = await storeBytes(store, delivery, { folder: 'outputs', name: '0', data: image });
  const options = { index: 0, contentType: 'image/png', data: image, stored: stored, facts: {}, chunkBytes: 300 };
  return splitOutput(delivery, options);
}

describe('bytes of a request outside Redis', () => {
  it('are read from the byte store: outputs, chunks, previews and checkpoints', async () => {
    const { store, worker, delivery } = await openWithBytes();
    const preview = await storeBytes(store, delivery, { folder: 'work', name: 'p', data: image.subarray(0, 10) });
    const checkpoint = await storeBytes(store, delivery, { folder: 'work', name: 'c', data: image.subarray(5, 50) });
    await writeNow(
      store,
      worker,
      {
        type: 'preview',
        delivery,
        progress: { index: 0, ...of },
        of,
        data: encodeStoredValue(preview),
        contentType: 'image/webp',
      },
      { type: 'checkpoint', delivery, index: 0, done: 1, data: encodeStoredValue(checkpoint) },
      ...(await writeOutput(store, delivery)),
    );
    expect((await readOutput(store, delivery.id, 0))?.data.equals(image)).toBe(true);
    expect(
      (await readOutputChunk(store, delivery.id, { output: { index: 0 } as OutputInfo, chunkIndex: 1 }))?.equals(
        image.subarray(300, 600),
      ),
    ).toBe(true);
    const events = await readEvents(store, delivery.id, { after: 0 });
    const shown = events.find((event) => event.type === 'preview')!;
    expect(await readPreview(store, delivery.id, shown)).toEqual(image.subarray(0, 10));
    const { checkpoints } = await readResumePoint(store, { id: delivery.id, outputs: 1 });
    expect(checkpoints.get(0)?.data).toEqual(image.subarray(5, 50));
  });

  it('count in full towards the stored bytes of the owner, although Redis holds a reference', async () => {
    const { store, worker, delivery } = await openWithBytes();
    const { redis } = store;
    const keys = store.keysOf('tiny');
    const inputBytes = await redis.strlen(keys.input(delivery.id));
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    expect(await redis.hget(keys.bytes(''), 'total')).toBe(`${6000 + inputBytes + 1000}`);
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    expect(await redis.hget(keys.bytes(''), 'total')).toBe(`${6000 + inputBytes + 1000}`);
    const fields = await redis.hgetall(keys.output(delivery.id, 0));
    expect(JSON.stringify(fields).length).toBeLessThan(900);
  });

  it('are swept when the request expires; previews and checkpoints when it ends', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes({ madeAgoMs: 7_200_000 });
    const sweeper = new BytesSweeper(store);
    const sweepAll = async (): Promise<number> => (await sweeper.sweepPage()) + (await sweeper.sweepPage());
    await storeBytes(store, delivery, { folder: 'work', name: 'p', data: image });
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    expect(await sweepAll()).toBe(0);
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
    expect(await sweepAll()).toBe(1);
    expect((await readOutput(store, delivery.id, 0))?.data.equals(image)).toBe(true);
    expect(await filesOf()).toHaveLength(1);
    // Simulate the end of the TTL.
    const ofRequest = (await allKeys(store)).filter((key) => key.includes(delivery.id));
    await Promise.all(ofRequest.map((key) => store.redis.del(key)));
    expect(await sweepAll()).toBe(1);
    expect(await filesOf()).toEqual([]);
  });

  it('are removed at once when the request is dropped', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes();
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
    expect(await dropRequest(store, delivery.id, { only: ['succeeded'] })).toEqual({ status: 'dropped' });
    expect(await filesOf()).toEqual([]);
  });

  it('survive until the result TTL if Redis has lost the request', async () => {
    const { store, delivery, filesOf } = await openWithBytes();
    await storeBytes(store, delivery, { folder: 'outputs', name: '0', data: image });
    await store.redis.del(store.keysOf('tiny').request(delivery.id));
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
    expect(await filesOf()).toHaveLength(1);
  });

  it('include partially written files, which are swept too', async () => {
    const { store, path, delivery, filesOf } = await openWithBytes({ madeAgoMs: 7_200_000 });
    await storeBytes(store, delivery, { folder: 'outputs', name: '0', data: image });
    const folder = join(path, store.prefix, delivery.id, 'outputs');
    await writeFile(join(folder, 'x.0.partial'), 'half');
    await store.redis.del(store.keysOf('tiny').request(delivery.id));
    expect(await new BytesSweeper(store).sweepPage()).toBe(2);
    expect(await filesOf()).toEqual([]);
  });

  it('leave no empty folder after the request has ended or expired', async () => {
    const { store, path, worker, delivery } = await openWithBytes({ madeAgoMs: 7_200_000 });
    const folderOf = (id: string): string => join(path, store.prefix, id, 'inputs');
    const gone = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() - 7_200_000 });
    const next = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });
    for (const id of [delivery.id, gone, next]) await mkdir(folderOf(id), { recursive: true });
    const foldersOf = async (): Promise<string[]> => (await readdir(join(path, store.prefix))).toSorted();
    const sweeper = new BytesSweeper(store);
    await sweeper.sweepPage();
    await sweeper.sweepPage();
    // Open requests, and those about to be admitted, retain their folders.
    expect(await foldersOf()).toEqual([delivery.id, next].toSorted());
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } });
    await sweeper.sweepPage();
    await sweeper.sweepPage();
    expect(await foldersOf()).toEqual([next]);
  });

  it('are not swept, and no secret is created, while Redis has no id secret', async () => {
    const { store, delivery, filesOf } = await openWithBytes({ madeAgoMs: 7_200_000 });
    await storeBytes(store, delivery, { folder: 'outputs', name: '0', data: image });
    await store.redis.del(`${store.prefix}:id-secret`, store.keysOf('tiny').request(delivery.id));
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
    expect(await filesOf()).toHaveLength(1);
    expect(await store.redis.exists(`${store.prefix}:id-secret`)).toBe(0);
  });

  it.each([
    ['text/plain', 'a text'],
    ['image/png', 'an image'],
  ])('are not looked up when an output itself looks like a reference (%s)', async (contentType) => {
    const { store, path, worker, delivery } = await openWithBytes();
    await writeFile(join(path, 'secret'), 'a secret of the server’s');
    const forged = [`../../../secret`, `../outputs/0`, `${store.prefix}/${delivery.id}/outputs/../../../../secret`];
    for (const name of forged) {
      const data = Buffer.from(`\0at 0 8 ${name}`);
      const output = { index: 0, contentType, data, facts: {}, chunkBytes: 3000 };
      await writeNow(store, worker, ...splitOutput(delivery, output));
      expect((await readOutput(store, delivery.id, 0))?.data).toEqual(data);
      expect(await readOutputChunk(store, delivery.id, { output: { index: 0 } as OutputInfo, chunkIndex: 0 })).toEqual(
        data,
      );
    }
    const reference = await storeBytes(store, delivery, { folder: 'outputs', name: '0', data: image });
    const data = Buffer.from(encodeStoredValue(reference));
    await writeNow(
      store,
      worker,
      ...splitOutput(delivery, { index: 0, contentType: 'text/plain', data, facts: {}, chunkBytes: 3000 }),
    );
    expect((await readOutput(store, delivery.id, 0))?.data).toEqual(data);
  });

  it('are not swept if they belong to another installation in the same directory', async () => {
    const { store, path } = await openWithBytes();
    const other = openTestStore({ prefix: store.prefix, bytes: { kind: 'directory', path } });
    const id = await newRequestId(openTestStore(), { model: 'tiny', owner: '', nowMs: Date.now() });
    await storeBytes(other, { id, token: 't' }, { folder: 'outputs', name: '0', data: image });
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
  });

  it('are not overwritten by a stale delivery: each delivery has its own names', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes();
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    const zombie = { ...delivery, token: 'stale' };
    await storeBytes(store, zombie, { folder: 'outputs', name: '0', data: Buffer.from('other') });
    expect((await readOutput(store, delivery.id, 0))?.data.equals(image)).toBe(true);
    expect(await filesOf()).toHaveLength(2);
  });

  it('cannot be read by a process without BYTES_URL', async () => {
    const { store, worker, delivery } = await openWithBytes();
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    const withoutBytes = openTestStore({ prefix: store.prefix });
    await expect(readOutput(withoutBytes, delivery.id, 0)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('count as missing output once the file is deleted', async () => {
    const { store, path, worker, delivery } = await openWithBytes();
    await writeNow(store, worker, ...(await writeOutput(store, delivery)));
    await rm(path, { recursive: true });
    expect(await readOutput(store, delivery.id, 0)).toBeUndefined();
  });
});
