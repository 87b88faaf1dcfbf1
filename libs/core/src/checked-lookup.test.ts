import { describe, expect, test } from 'vitest';
import { byteAt, deleteOldest, isNonEmpty, itemAt, lastItem, mapNonEmpty } from './checked-lookup.ts';
import { nonEmpty, numberAt, pairUp, valueOfKey } from './checked-lookup.ts';

describe('lookups of what must be there', () => {
  test('return the item, number, byte or value', () => {
    expect(itemAt(['a', 'b'], 1)).toBe('b');
    expect(lastItem(['a', 'b'])).toBe('b');
    expect(numberAt(new Float32Array([0, 0.5]), 0)).toBe(0);
    expect(byteAt(new Uint8Array([0, 7]), 1)).toBe(7);
    expect(valueOfKey(new Map([['a', 1]]), 'a')).toBe(1);
  });

  test('throw an error with the index or key, and the size, if it is missing', () => {
    expect(() => itemAt(['a'], 1)).toThrow('index 1 is outside of a list of 1 items');
    expect(() => itemAt([], 0)).toThrow(RangeError);
    expect(() => numberAt(new Float64Array(3), -1)).toThrow('index -1 is outside of a list of 3 items');
    expect(() => byteAt(new Uint8Array(3), 0.5)).toThrow('index 0.5 is outside of a list of 3 items');
    expect(() => valueOfKey(new Map([['a', 1]]), 'b')).toThrow('b is not among 1 keys');
  });

  test('pair lists of one length, and reject lists of two', () => {
    expect(pairUp(['a', 'b'], [1, 2])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(() => pairUp(['a', 'b'], [1])).toThrow('2 items cannot pair with 1');
    expect(() => pairUp(['a'], [1, 2])).toThrow('1 items cannot pair with 2');
  });

  test('tell lists with items from empty ones', () => {
    expect([isNonEmpty([]), isNonEmpty([undefined])]).toEqual([false, true]);
    expect(nonEmpty(['a'])).toEqual(['a']);
    expect(mapNonEmpty(['a', 'b'], (item) => item.toUpperCase())).toEqual(['A', 'B']);
    expect(() => nonEmpty([])).toThrow('a list has no items, expected at least one');
    expect(() => lastItem([])).toThrow(RangeError);
  });
});

test('deletes the key of a map that was added first', () => {
  const map = new Map([
    ['a', 1],
    ['b', 2],
  ]);
  deleteOldest(map);
  expect([...map.keys()]).toEqual(['b']);
  deleteOldest(map);
  deleteOldest(map);
  expect(map.size).toBe(0);
});
