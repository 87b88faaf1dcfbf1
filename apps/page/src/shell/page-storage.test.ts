import { expect, it } from 'vitest';
import { openPageStorage, type PageStorage } from './page-storage.ts';

function createStorage(): PageStorage & { isFull: boolean } {
  const items = new Map<string, string>();
  return {
    isFull: false,
    getItem: (key) => items.get(key) ?? null,
    setItem(key, value) {
      if (this.isFull) throw new DOMException('full', 'QuotaExceededError');
      items.set(key, value);
    },
    removeItem: (key) => void items.delete(key),
  };
}

it('stores values in memory if the browser blocks its storage', () => {
  const storage = openPageStorage(() => {
    throw new DOMException('blocked', 'SecurityError');
  });
  expect(storage.getItem('a')).toBe(null);
  storage.setItem('a', '1');
  expect(storage.getItem('a')).toBe('1');
  storage.removeItem('a');
  expect(storage.getItem('a')).toBe(null);
});

it('stores the newest values in memory while the storage is full, and writes there again when there is space', () => {
  const inner = createStorage();
  const storage = openPageStorage(() => inner);
  storage.setItem('a', '1');
  inner.isFull = true;
  storage.setItem('a', '2');
  expect([storage.getItem('a'), inner.getItem('a')]).toEqual(['2', '1']);
  inner.isFull = false;
  storage.setItem('a', '3');
  // Another tab writes a value. It is returned, because this tab has no unsaved one.
  inner.setItem('a', '4');
  expect(storage.getItem('a')).toBe('4');
  storage.removeItem('a');
  expect([storage.getItem('a'), inner.getItem('a')]).toEqual([null, null]);
});
