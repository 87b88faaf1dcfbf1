import { expect, it } from 'vitest';
import { createGalleryStorage, type GalleryEntry, galleryKey, maxEntries } from './gallery-storage.ts';

function openStorage(text?: string) {
  const items = new Map(text === undefined ? [] : [[galleryKey, text]]);
  return {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
  };
}
const entry = (id: string, createdAtMs = 1): GalleryEntry => ({ id, createdAtMs, request: { prompt: id } });
const ids = (entries: readonly GalleryEntry[]): string[] => entries.map(({ id }) => id);

it('stores the newest first, each once, and removes entries', () => {
  const gallery = createGalleryStorage(openStorage());
  for (const id of ['a', 'b', 'a', 'c']) gallery.add(entry(id));
  expect(gallery.read()).toEqual([entry('c'), entry('a'), entry('b')]);
  gallery.remove('a');
  expect(ids(gallery.read())).toEqual(['c', 'b']);
});

it('merges the writes of two tabs', () => {
  const storage = openStorage();
  const [left, right] = [createGalleryStorage(storage), createGalleryStorage(storage)];
  left.add(entry('a'));
  right.add(entry('b'));
  left.remove('a');
  expect(ids(right.read())).toEqual(['b']);
});

it('evicts the oldest entries above the limit', () => {
  const gallery = createGalleryStorage(openStorage());
  for (let index = 0; index <= maxEntries; index++) gallery.add(entry(`r${index}`));
  const kept = ids(gallery.read());
  expect([kept.length, kept[0], kept.at(-1)]).toEqual([maxEntries, `r${maxEntries}`, 'r1']);
});

it('adds entries from elsewhere by time, the newest first, and evicts none for them', () => {
  const gallery = createGalleryStorage(openStorage());
  for (let index = 0; index < maxEntries - 2; index++) gallery.add(entry(`own${index}`, index * 10));
  expect(gallery.addAll([entry('old', 15), entry('own3', 7), entry('new', 9999), entry('middle', 25)])).toBe(2);
  const all = ids(gallery.read());
  expect([all.length, all[0], all.at(-4), all.at(-1)]).toEqual([maxEntries, 'new', 'middle', 'own0']);
  expect(all.filter((id) => id.startsWith('own'))).toHaveLength(maxEntries - 2);
});

it.each([
  '{',
  '7',
  'null',
  '[null, 3, {"id": 1}, {"id": "x", "createdAtMs": 1}]',
  '[{"id": "x", "createdAtMs": 1, "request": {"prompt": "a", "size": 7}}]',
  '[{"id": "x", "createdAtMs": 1, "request": {"prompt": "a", "n": -1}}]',
  '[{"id": "x", "createdAtMs": 1, "request": {"prompt": "a", "n": 1e9}}]',
])('ignores the invalid value %s', (text) => {
  const gallery = createGalleryStorage(openStorage(text));
  expect(gallery.read()).toEqual([]);
  gallery.add(entry('a'));
  expect(ids(gallery.read())).toEqual(['a']);
});
