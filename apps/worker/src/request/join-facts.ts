import type { Metadata } from '@darkroom/core';

/** Merges the metadata of two consecutive text chunks: strings are joined, of numbers the later one wins. */
export function joinFacts(left: Metadata | undefined, right: Metadata | undefined): Metadata | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  const strings = Object.entries(right).map(([name, value]) => {
    const before = left[name];
    return [name, typeof before === 'string' && typeof value === 'string' ? before + value : value] as const;
  });
  return { ...left, ...Object.fromEntries(strings) };
}
