import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allKeys, openTestStore } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ByteStore } from '../byte-stores/byte-store.ts';
import { createFileId } from '../bytes/file-id.ts';
import { BytesSweeper } from '../bytes/sweep-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { deleteFile, findFile, listFiles, readFileBytes, storeFile } from './stored-files.ts';

const limits = { maxFiles: 3, maxBytes: 100 };
const fileOf = (owner: string, text: string) => ({
  owner,
  data: Buffer.from(text),
  contentType: 'image/png',
  sha256: createHash('sha256').update(text).digest('hex'),
  metadata: { of: text },
});

async function stored(store: StoreConnection, owner: string, text: string) {
  const result = await storeFile(store, fileOf(owner, text), limits);
  if (result.status !== 'stored') throw new Error(result.status);
  return result.file;
}

async function openWithDirectory(resultTtlMs = 60_000): Promise<{ store: StoreConnection; bytes: ByteStore }> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-files-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const store = openTestStore({ bytes: { kind: 'directory', path: directory }, resultTtlMs });
  return { store, bytes: store.bytes! };
}

async function namesIn(bytes: ByteStore, { prefix }: StoreConnection): Promise<string[]> {
  const names: string[] = [];
  for await (const page of bytes.list(`${prefix}/`)) names.push(...page);
  return names;
}

describe.each(['Redis', 'a directory'])('files in %s', (backend) => {
  const open = async () => (backend === 'Redis' ? openTestStore() : (await openWithDirectory()).store);

  it('are readable by their owner only', async () => {
    const store = await open();
    const { id } = await stored(store, 'alice', 'a fox');
    const file = (await findFile(store, 'alice', id))!;
    expect(file).toMatchObject({ id, size: 5, contentType: 'image/png', metadata: { of: 'a fox' } });
    expect((await readFileBytes(store, file))!.toString()).toBe('a fox');
    expect(await findFile(store, 'bob', id)).toBeUndefined();
    expect(await listFiles(store, 'bob')).toEqual([]);
    expect(await listFiles(store, 'alice')).toEqual([file]);
  });

  it('are deleted by their owner only, with their bytes', async () => {
    const store = await open();
    const before = await allKeys(store);
    const file = await stored(store, 'alice', 'a fox');
    expect(await deleteFile(store, 'bob', file.id)).toBe(false);
    expect(await deleteFile(store, 'alice', file.id)).toBe(true);
    expect(await deleteFile(store, 'alice', file.id)).toBe(false);
    expect(await readFileBytes(store, file)).toBeUndefined();
    expect(await allKeys(store)).toEqual(before);
  });

  it('are limited in number and bytes per owner, also under concurrent uploads', async () => {
    const store = await open();
    const results = await Promise.all(
      Array.from({ length: 8 }, () => storeFile(store, fileOf('alice', 'a fox'), limits)),
    );
    expect(results.filter(({ status }) => status === 'stored')).toHaveLength(3);
    expect(results.find(({ status }) => status === 'full')).toMatchObject({ status: 'full' });
    expect(await storeFile(store, fileOf('bob', 'x'.repeat(101)), limits)).toEqual({
      status: 'full',
      files: 0,
      bytes: 0,
    });
    expect((await storeFile(store, fileOf('bob', 'x'.repeat(100)), limits)).status).toBe('stored');
    expect(await storeFile(store, fileOf('bob', 'x'), limits)).toEqual({ status: 'full', files: 1, bytes: 100 });
  });

  it('expire, and no longer count towards the limits', async () => {
    const store = backend === 'Redis' ? openTestStore({ resultTtlMs: 30 }) : (await openWithDirectory(30)).store;
    const file = await stored(store, 'alice', 'a fox');
    await expect.poll(() => findFile(store, 'alice', file.id)).toBeUndefined();
    await expect.poll(() => readFileBytes(store, file)).toBeUndefined();
    expect(await listFiles(store, 'alice')).toEqual([]);
    for (let count = 0; count < 3; count++) await stored(store, 'alice', 'another');
  });
});

it('a refused file leaves no bytes in the directory', async () => {
  const { store, bytes } = await openWithDirectory();
  expect((await storeFile(store, fileOf('bob', 'x'.repeat(101)), limits)).status).toBe('full');
  expect(await namesIn(bytes, store)).toEqual([]);
});

it('the janitor removes expired files from the directory, and no others', async () => {
  const { store, bytes } = await openWithDirectory(1000);
  const { id } = await stored(store, 'alice', 'a fox');
  const folder = (expiresAtMs: number) => `${store.prefix}/${createFileId(expiresAtMs)}/inputs/`;
  const expired = `${folder(Date.now() - 3_600_000)}content`;
  const unknown = `${store.prefix}/file-of-another-system/inputs/readme.txt`;
  await bytes.put(expired, Buffer.from('old'));
  await bytes.put(unknown, Buffer.from('not ours'));
  const sweeper = new BytesSweeper(store);
  expect(await sweeper.sweepPage()).toBe(1);
  expect((await namesIn(bytes, store)).toSorted()).toEqual(
    [unknown, `${store.prefix}/${id}/inputs/content`].toSorted(),
  );
});
