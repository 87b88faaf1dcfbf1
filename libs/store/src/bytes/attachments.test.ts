/** What came with a request: stored with it, there for its worker and its owner, and gone when its prompt goes. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allKeys, openTestStore, seedRequest, seedRunning, testEnvelope, write } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  BytesSweeper,
  dropRequest,
  newRequestId,
  readAttachment,
  readAttachments,
  retryRequest,
  type StoreConnection,
} from '../index.ts';

const image = Buffer.from(Array.from({ length: 1000 }, (_value, index) => index % 251));
const mask = Buffer.from('a mask');
const attachments = new Map([
  ['image', image],
  ['mask', mask],
]);
const total = image.byteLength + mask.byteLength;
const names = { attachments: ['image', 'mask'] };
const error = { code: 'internal', message: 'the engine failed' } as const;

interface Place {
  store: StoreConnection;
  /** Names of what is kept beside Redis. */
  filesOf: () => Promise<string[]>;
}

function openRedis(): Promise<Place> {
  return Promise.resolve({ store: openTestStore(), filesOf: () => Promise.resolve([]) });
}

async function openDirectory(): Promise<Place> {
  const path = await mkdtemp(join(tmpdir(), 'darkroom-attachments-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  const filesOf = async (): Promise<string[]> => {
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  };
  return { store: openTestStore({ bytes: { kind: 'directory', path } }), filesOf };
}

const newId = (store: StoreConnection): Promise<string> =>
  newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });

describe.each([
  ['Redis', openRedis],
  ['a directory', openDirectory],
])('kept in %s', (_where, open) => {
  it('is read as it came, all of it or one by its name', async () => {
    const { store } = await open();
    const { id } = await seedRequest(store, { id: await newId(store), ...names, options: { attachments } });
    expect(await readAttachments(store, id)).toEqual(attachments);
    expect(await readAttachment(store, id, 'mask')).toEqual(mask);
    expect(await readAttachment(store, id, 'other')).toBeUndefined();
  });

  it('is not there when its request was refused', async () => {
    const { store, filesOf } = await open();
    await seedRequest(store, { options: {} });
    const keys = await allKeys(store);
    const envelope = testEnvelope({ id: await newId(store), ...names });
    const options = { queueMaxLength: 1, unserved: 'accept', attachments } as const;
    expect(await admitRequest(store, envelope, options)).toMatchObject({ status: 'overloaded' });
    expect((await allKeys(store)).filter((key) => !keys.includes(key) && !key.endsWith('id-secret'))).toEqual([]);
    expect(await filesOf()).toEqual([]);
  });

  it('is as it was for who sends the same id again with something else', async () => {
    const { store, filesOf } = await open();
    const asked = await seedRequest(store, { id: await newId(store), ...names, options: { attachments } });
    const files = await filesOf();
    const other = { queueMaxLength: 9, unserved: 'accept', attachments: new Map([['image', mask]]) } as const;
    expect(await admitRequest(store, asked, other)).toEqual({ status: 'duplicate' });
    expect(await readAttachments(store, asked.id)).toEqual(attachments);
    expect(await filesOf()).toEqual(files);
  });

  it('can be had as long as the result where prompts are kept, and counts for its owner', async () => {
    const { store, filesOf } = await open();
    const { worker, delivery } = await seedRunning(store, {
      id: await newId(store),
      ...names,
      options: { attachments },
    });
    await write(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
    expect(await readAttachments(store, delivery.id)).toEqual(attachments);
    const keys = store.keysOf('tiny');
    for (const key of (await allKeys(store)).filter((found) => found.includes(delivery.id)))
      expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    const kept = async (): Promise<number> =>
      (await store.redis.hvals(keys.bytes(''))).reduce((sum, bytes) => sum + Number(bytes), 0);
    expect(await kept()).toBe(total);
    await dropRequest(store, delivery.id);
    expect(await kept()).toBe(0);
    expect(await readAttachments(store, delivery.id)).toEqual(new Map());
    expect((await allKeys(store)).filter((key) => key.includes(delivery.id))).toEqual([]);
    expect(await filesOf()).toEqual([]);
  });

  it('goes at the end where prompts go', async () => {
    const { store, filesOf } = await open();
    const asked = testEnvelope({ id: await newId(store), ...names });
    const options = { attachments, promptless: { ...asked, input: {} } };
    const { worker, delivery } = await seedRunning(store, { ...asked, options });
    await write(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    await new BytesSweeper(store).sweepPage();
    expect(await readAttachments(store, delivery.id)).toEqual(new Map());
    expect((await allKeys(store)).filter((key) => key.includes(':inputs:'))).toEqual([]);
    expect(await filesOf()).toEqual([]);
    expect(await store.redis.hget(store.keysOf('tiny').request(delivery.id), 'written')).toBeNull();
    expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-kept' });
  });

  it('comes with the retry of its request, as that’s own', async () => {
    const { store } = await open();
    const { worker, delivery } = await seedRunning(store, {
      id: await newId(store),
      ...names,
      options: { attachments },
    });
    await write(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    const retried = await retryRequest(store, delivery.id);
    if (retried.status !== 'retried') throw new Error(retried.status);
    await dropRequest(store, delivery.id);
    expect(await readAttachments(store, retried.id)).toEqual(attachments);
  });

  it('has no retry of its request when a part of it is gone', async () => {
    const { store } = await open();
    const { worker, delivery } = await seedRunning(store, {
      id: await newId(store),
      ...names,
      options: { attachments },
    });
    await write(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    await store.redis.hdel(store.keysOf('tiny').inputs(delivery.id), 'mask');
    expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-kept' });
    expect(await store.redis.zcard(store.keysOf('tiny').waiting)).toBe(0);
  });
});
