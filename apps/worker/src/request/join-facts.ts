import type { Facts } from '@darkroom/core';

/** What is said of two pieces of text together: strings are joined, of numbers the later stands. */
export function joinFacts(left: Facts | undefined, right: Facts | undefined): Facts | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  const strings = Object.entries(right).map(([name, value]) => {
    const before = left[name];
    return [name, typeof before === 'string' && typeof value === 'string' ? before + value : value] as const;
  });
  return { ...left, ...Object.fromEntries(strings) };
}
