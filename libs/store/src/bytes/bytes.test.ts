/** Bytes of requests that are kept beside Redis: in a directory here, in a bucket in test/systems/bytes.test.ts. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OutputInfo } from '@darkroom/core';
import { allKeys, describeByteStore, openTestStore, seedRunning, write } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  BytesSweeper,
  type Delivery,
  encodeHeld,
  dropRequest,
  keepBytes,
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

  it('that cannot be written to says so, and keeps no half', async () => {
    await writeFile(join(path, 'file'), '');
    const bytes = openBytes({ kind: 'directory', path: join(path, 'file') });
    await expect(bytes.put('a/work/b', Buffer.from('c'))).rejects.toMatchObject({ code: 'unavailable' });
  });
});

const of = { done: 1, total: 4 };
const picture = Buffer.from(Array.from({ length: 1000 }, (_value, index) => index % 251));

/** A store beside which bytes go into a directory of the test's own. */
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
  return { store, path, filesOf, ...(await seedRunning(store, { id })) };
}

async function writeOutput(store: StoreConnection, delivery: Delivery) {
  const held = await keepBytes(store, delivery, { folder: 'outputs', name: '0', data: picture });
  const options = { index: 0, contentType: 'image/png', data: picture, held, facts: {}, chunkBytes: 300 };
  return splitOutput(delivery, options);
}

describe('what a request keeps', () => {
  it('is read from there, an output, its chunks, previews and checkpoints alike', async () => {
    const { store, worker, delivery } = await openWithBytes();
    const preview = await keepBytes(store, delivery, { folder: 'work', name: 'p', data: picture.subarray(0, 10) });
    const checkpoint = await keepBytes(store, delivery, { folder: 'work', name: 'c', data: picture.subarray(5, 50) });
    await write(
      store,
      worker,
      {
        type: 'preview',
        delivery,
        progress: { index: 0, ...of },
        of,
        data: encodeHeld(preview),
        contentType: 'image/webp',
      },
      { type: 'checkpoint', delivery, index: 0, done: 1, data: encodeHeld(checkpoint) },
      ...(await writeOutput(store, delivery)),
    );
    expect((await readOutput(store, delivery.id, 0))?.data.equals(picture)).toBe(true);
    expect(
      (await readOutputChunk(store, delivery.id, { output: { index: 0 } as OutputInfo, chunkIndex: 1 }))?.equals(
        picture.subarray(300, 600),
      ),
    ).toBe(true);
    const events = await readEvents(store, delivery.id, { after: 0 });
    const shown = events.find((event) => event.type === 'preview')!;
    expect(await readPreview(store, delivery.id, shown)).toEqual(picture.subarray(0, 10));
    const { checkpoints } = await readResumePoint(store, { id: delivery.id, outputs: 1 });
    expect(checkpoints.get(0)?.data).toEqual(picture.subarray(5, 50));
  });

  it('is counted for its owner as it is, whatever Redis holds of it', async () => {
    const { store, worker, delivery } = await openWithBytes();
    const { redis } = store;
    const request = store.keysOf('tiny').request(delivery.id);
    await write(store, worker, ...(await writeOutput(store, delivery)));
    expect(await redis.hget(request, 'written')).toBe('1000');
    await write(store, worker, ...(await writeOutput(store, delivery)));
    expect(await redis.hget(request, 'written')).toBe('1000');
    const held = await redis.hgetall(store.keysOf('tiny').output(delivery.id, 0));
    expect(JSON.stringify(held).length).toBeLessThan(900);
  });

  it('goes when the request goes, and what was for its run only at the end', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes({ madeAgoMs: 7_200_000 });
    const sweeper = new BytesSweeper(store);
    const sweepAll = async (): Promise<number> => (await sweeper.sweepPage()) + (await sweeper.sweepPage());
    await keepBytes(store, delivery, { folder: 'work', name: 'p', data: picture });
    await write(store, worker, ...(await writeOutput(store, delivery)));
    expect(await sweepAll()).toBe(0);
    await write(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
    expect(await sweepAll()).toBe(1);
    expect((await readOutput(store, delivery.id, 0))?.data.equals(picture)).toBe(true);
    expect(await filesOf()).toHaveLength(1);
    // Its time is over.
    const ofRequest = (await allKeys(store)).filter((key) => key.includes(delivery.id));
    await Promise.all(ofRequest.map((key) => store.redis.del(key)));
    expect(await sweepAll()).toBe(1);
    expect(await filesOf()).toEqual([]);
  });

  it('goes at once with a request that is dropped', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes();
    await write(store, worker, ...(await writeOutput(store, delivery)));
    await write(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
    expect(await dropRequest(store, delivery.id, { only: ['succeeded'] })).toEqual({ status: 'dropped' });
    expect(await filesOf()).toEqual([]);
  });

  it('is left alone while it could still be asked for, if Redis has lost its request', async () => {
    const { store, delivery, filesOf } = await openWithBytes();
    await keepBytes(store, delivery, { folder: 'outputs', name: '0', data: picture });
    await store.redis.del(store.keysOf('tiny').request(delivery.id));
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
    expect(await filesOf()).toHaveLength(1);
  });

  it('goes too if it was left half written', async () => {
    const { store, path, delivery, filesOf } = await openWithBytes({ madeAgoMs: 7_200_000 });
    await keepBytes(store, delivery, { folder: 'outputs', name: '0', data: picture });
    const folder = join(path, store.prefix, delivery.id, 'outputs');
    await writeFile(join(folder, 'x.0.partial'), 'half');
    await store.redis.del(store.keysOf('tiny').request(delivery.id));
    expect(await new BytesSweeper(store).sweepPage()).toBe(2);
    expect(await filesOf()).toEqual([]);
  });

  it.each([
    ['text/plain', 'a text'],
    ['image/png', 'a picture'],
  ])('is not looked for where bytes say so by themselves (%s)', async (contentType) => {
    const { store, path, worker, delivery } = await openWithBytes();
    await writeFile(join(path, 'secret'), 'a secret of the server’s');
    const says = [`../../../secret`, `../outputs/0`, `${store.prefix}/${delivery.id}/outputs/../../../../secret`];
    for (const name of says) {
      const data = Buffer.from(`\0at 0 8 ${name}`);
      const output = { index: 0, contentType, data, facts: {}, chunkBytes: 3000 };
      await write(store, worker, ...splitOutput(delivery, output));
      expect((await readOutput(store, delivery.id, 0))?.data).toEqual(data);
      expect(await readOutputChunk(store, delivery.id, { output: { index: 0 } as OutputInfo, chunkIndex: 0 })).toEqual(
        data,
      );
    }
    const mine = await keepBytes(store, delivery, { folder: 'outputs', name: '0', data: picture });
    const data = Buffer.from(encodeHeld(mine));
    await write(
      store,
      worker,
      ...splitOutput(delivery, { index: 0, contentType: 'text/plain', data, facts: {}, chunkBytes: 3000 }),
    );
    expect((await readOutput(store, delivery.id, 0))?.data).toEqual(data);
  });

  it('is left alone when it is of another system that shares the place', async () => {
    const { store, path } = await openWithBytes();
    const other = openTestStore({ prefix: store.prefix, bytes: { kind: 'directory', path } });
    const id = await newRequestId(openTestStore(), { model: 'tiny', owner: '', nowMs: Date.now() });
    await keepBytes(other, { id, token: 't' }, { folder: 'outputs', name: '0', data: picture });
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
  });

  it('is nobody else’s: the next delivery has names of its own', async () => {
    const { store, worker, delivery, filesOf } = await openWithBytes();
    await write(store, worker, ...(await writeOutput(store, delivery)));
    const zombie = { ...delivery, token: 'stale' };
    await keepBytes(store, zombie, { folder: 'outputs', name: '0', data: Buffer.from('other') });
    expect((await readOutput(store, delivery.id, 0))?.data.equals(picture)).toBe(true);
    expect(await filesOf()).toHaveLength(2);
  });

  it('cannot be had by a process that was not told where it is', async () => {
    const { store, worker, delivery } = await openWithBytes();
    await write(store, worker, ...(await writeOutput(store, delivery)));
    const blind = openTestStore({ prefix: store.prefix });
    await expect(readOutput(blind, delivery.id, 0)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('is no output any more when somebody has removed it', async () => {
    const { store, path, worker, delivery } = await openWithBytes();
    await write(store, worker, ...(await writeOutput(store, delivery)));
    await rm(path, { recursive: true });
    expect(await readOutput(store, delivery.id, 0)).toBeUndefined();
  });
});
