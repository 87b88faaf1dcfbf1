import type { NonEmpty } from './checked-lookup.ts';

/** Groups items by key, preserving order; groups are in the order of their first item. */
export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): NonEmpty<Item>[] {
  const groups = new Map<string, [Item, ...Item[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
