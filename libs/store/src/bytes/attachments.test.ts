/** Attachments: stored with their request, readable by its worker and owner, deleted with its prompt. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allKeys, openTestStore, seedRequest, seedRunning, testEnvelope, writeNow } from '@darkroom/testing';
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

interface Fixture {
  store: StoreConnection;
  /** Names of the files outside Redis. */
  filesOf: () => Promise<string[]>;
}

function openRedis(): Promise<Fixture> {
  return Promise.resolve({ store: openTestStore(), filesOf: () => Promise.resolve([]) });
}

async function openDirectory(): Promise<Fixture> {
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
])('attachments stored in %s', (_backend, open) => {
  it('are read back unchanged, all of them or one by name', async () => {
    const { store } = await open();
    const { id } = await seedRequest(store, { id: await newId(store), ...names, options: { attachments } });
    expect(await readAttachments(store, id)).toEqual(attachments);
    expect(await readAttachment(store, id, 'mask')).toEqual(mask);
    expect(await readAttachment(store, id, 'other')).toBeUndefined();
  });

  it('are not stored when the request is refused', async () => {
    const { store, filesOf } = await open();
    await seedRequest(store, { options: {} });
    const keys = await allKeys(store);
    const envelope = testEnvelope({ id: await newId(store), ...names });
    const options = { queueMaxLength: 1, unserved: 'accept', attachments } as const;
    expect(await admitRequest(store, envelope, options)).toMatchObject({ status: 'overloaded' });
    expect((await allKeys(store)).filter((key) => !keys.includes(key) && !key.endsWith('id-secret'))).toEqual([]);
    expect(await filesOf()).toEqual([]);
  });

  it('stay unchanged when a duplicate id is submitted with other attachments', async () => {
    const { store, filesOf } = await open();
    const first = await seedRequest(store, { id: await newId(store), ...names, options: { attachments } });
    const files = await filesOf();
    const other = { queueMaxLength: 9, unserved: 'accept', attachments: new Map([['image', mask]]) } as const;
    expect(await admitRequest(store, first, other)).toEqual({ status: 'duplicate' });
    expect(await readAttachments(store, first.id)).toEqual(attachments);
    expect(await filesOf()).toEqual(files);
  });

  it('stay readable until the result TTL if prompts are retained, and count towards the stored bytes of the owner', async () => {
    const { store, filesOf } = await open();
    const request = { id: await newId(store), ...names, options: { attachments, ownerMaxBytes: 1e9 } };
    const { worker, delivery } = await seedRunning(store, request);
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    expect(await new BytesSweeper(store).sweepPage()).toBe(0);
    expect(await readAttachments(store, delivery.id)).toEqual(attachments);
    const keys = store.keysOf('tiny');
    for (const key of (await allKeys(store)).filter((found) => found.includes(delivery.id)))
      expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    const storedBytes = async (): Promise<number> => Number(await store.redis.hget(keys.bytes(''), 'total'));
    const inputBytes = await store.redis.strlen(keys.input(delivery.id));
    expect(await storedBytes()).toBe(6000 + inputBytes + total);
    await dropRequest(store, delivery.id);
    expect(await storedBytes()).toBe(0);
    expect(await readAttachments(store, delivery.id)).toEqual(new Map());
    expect((await allKeys(store)).filter((key) => key.includes(delivery.id))).toEqual([]);
    expect(await filesOf()).toEqual([]);
  });

  it('are deleted at the end of the request when prompts are not retained', async () => {
    const { store, filesOf } = await open();
    const envelope = testEnvelope({ id: await newId(store), ...names });
    const options = { attachments, promptless: { ...envelope, input: {} }, ownerMaxBytes: 1e9 };
    const { worker, delivery } = await seedRunning(store, { ...envelope, options });
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    await new BytesSweeper(store).sweepPage();
    expect(await readAttachments(store, delivery.id)).toEqual(new Map());
    expect((await allKeys(store)).filter((key) => key.includes(':inputs:'))).toEqual([]);
    expect(await filesOf()).toEqual([]);
    const keys = store.keysOf('tiny');
    const left = await store.redis.strlen(keys.input(delivery.id));
    expect(await store.redis.hget(keys.bytes(''), 'total')).toBe(`${6000 + left}`);
    expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-kept' });
  });

  it('are copied to a retry, which does not depend on the failed request', async () => {
    const { store } = await open();
    const { worker, delivery } = await seedRunning(store, {
      id: await newId(store),
      ...names,
      options: { attachments },
    });
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    const retried = await retryRequest(store, delivery.id);
    if (retried.status !== 'retried') throw new Error(retried.status);
    await dropRequest(store, delivery.id);
    expect(await readAttachments(store, retried.id)).toEqual(attachments);
  });

  it('prevent a retry when one of them is missing', async () => {
    const { store } = await open();
    const { worker, delivery } = await seedRunning(store, {
      id: await newId(store),
      ...names,
      options: { attachments },
    });
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
    await store.redis.hdel(store.keysOf('tiny').inputs(delivery.id), 'mask');
    expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-kept' });
    expect(await store.redis.zcard(store.keysOf('tiny').waiting)).toBe(0);
  });
});
