/** Lookups of items that must exist. They throw at once, where `undefined` would become NaN or fail later. */

/** A list with at least one item. */
export type NonEmpty<Item> = readonly [Item, ...Item[]];

/** Returns true, and narrows the type, if there is an item. */
export function isNonEmpty<Item>(items: readonly Item[]): items is NonEmpty<Item> {
  return items.length > 0;
}

/** Returns the items of a list that must have one. @throws RangeError */
export function nonEmpty<Item>(items: readonly Item[]): NonEmpty<Item> {
  if (!isNonEmpty(items)) throw new RangeError('a list has no items, expected at least one');
  return items;
}

/** Returns an item that must exist. @throws RangeError */
export function itemAt<Item>(items: ArrayLike<Item>, index: number): Item {
  const item = items[index];
  if (item === undefined) throw missingItem(index, items.length);
  return item;
}

/** Returns the last item of a list that must have one. @throws RangeError */
export function lastItem<Item>(items: ArrayLike<Item>): Item {
  return itemAt(items, items.length - 1);
}

/**
 * Returns a number that must exist, as `itemAt`, for loops over millions of numbers: V8 reads as fast as without the
 * check only if the function sees few types of arrays.
 *
 * @throws RangeError
 */
export function numberAt(numbers: Float32Array | Float64Array | Uint32Array | Uint16Array, index: number): number {
  const value = numbers[index];
  if (value === undefined) throw missingItem(index, numbers.length);
  return value;
}

/** Returns a byte that must exist, as `numberAt` returns a number. @throws RangeError */
export function byteAt(bytes: Uint8Array | Uint8ClampedArray, index: number): number {
  const value = bytes[index];
  if (value === undefined) throw missingItem(index, bytes.length);
  return value;
}

function missingItem(index: number, length: number): RangeError {
  return new RangeError(`index ${index} is outside of a list of ${length} items`);
}

/** Returns the value of a key that must exist. @throws RangeError */
export function valueOfKey<Key, Value>(values: ReadonlyMap<Key, Value>, key: Key): Value {
  const value = values.get(key);
  if (value === undefined) throw new RangeError(`${String(key)} is not among ${values.size} keys`);
  return value;
}

/** Returns each item with the one at the same index of a second list. @throws RangeError if the lengths differ. */
export function pairUp<Left, Right>(left: readonly Left[], right: ArrayLike<Right>): [Left, Right][] {
  if (left.length !== right.length) throw new RangeError(`${left.length} items cannot pair with ${right.length}`);
  return left.map((item, index) => [item, itemAt(right, index)]);
}

/** Maps all items; the type still states that there is one. */
export function mapNonEmpty<Item, Mapped>(
  [first, ...others]: NonEmpty<Item>,
  map: (item: Item) => Mapped,
): NonEmpty<Mapped> {
  return [map(first), ...others.map((item) => map(item))];
}

/** Deletes the key that was added first, if any. */
export function deleteOldest(map: Map<unknown, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
