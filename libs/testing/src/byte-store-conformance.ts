/** Conformance tests of every blob store. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { BytesAddress } from '@darkroom/core';
import { type ByteStore, openBytes } from '@darkroom/store';
import { expect, it } from 'vitest';

/** @param addressOf called when the tests run. */
export function describeByteStore(addressOf: () => BytesAddress): void {
  const open = (): { bytes: ByteStore; prefix: string } => ({
    bytes: openBytes(addressOf()),
    prefix: `${randomUUID()}/`,
  });
  it('returns what was put, in full and in part', async () => {
    const { bytes, prefix } = open();
    const data = randomBytes(300_000);
    await bytes.put(`${prefix}a/b.0`, data);
    expect((await bytes.get(`${prefix}a/b.0`, { from: 0, to: data.length }))?.equals(data)).toBe(true);
    expect((await bytes.get(`${prefix}a/b.0`, { from: 100, to: 131_072 }))?.equals(data.subarray(100, 131_072))).toBe(
      true,
    );
  });

  it('returns undefined for other names and for ranges beyond the end', async () => {
    const { bytes, prefix } = open();
    await bytes.put(`${prefix}a/b.0`, Buffer.from('abc'));
    expect(await bytes.get(`${prefix}a/b.1`, { from: 0, to: 3 })).toBeUndefined();
    expect(await bytes.get(`${prefix}c/b.0`, { from: 0, to: 3 })).toBeUndefined();
    expect(await bytes.get(`${prefix}a/b.0`, { from: 1, to: 4 })).toBeUndefined();
  });

  it('lists names by prefix, and removes them', async () => {
    const { bytes, prefix } = open();
    const names = ['a/outputs/t.0', 'a/work/t.p', 'ab/outputs/t.0'].map((name) => prefix + name);
    await Promise.all(names.map((name) => bytes.put(name, Buffer.from(name))));
    expect(await namesOf(bytes, prefix)).toEqual(names);
    expect(await namesOf(bytes, `${prefix}a/`)).toEqual(names.slice(0, 2));
    await bytes.remove([names[0]!, `${prefix}a/none`]);
    expect(await namesOf(bytes, prefix)).toEqual(names.slice(1));
    await bytes.remove(names);
    expect(await namesOf(bytes, prefix)).toEqual([]);
    expect(await namesOf(bytes, `${prefix}none/`)).toEqual([]);
  });
}

async function namesOf(bytes: ByteStore, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const page of bytes.list(prefix)) names.push(...page);
  return names.toSorted();
}
