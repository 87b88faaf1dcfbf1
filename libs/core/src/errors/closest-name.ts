/**
 * Returns the known name that is closest to a misspelled `name`, or undefined if none is close. `compatNames` maps
 * names of other systems to ours.
 */
export function closestName(
  name: string,
  known: readonly string[],
  compatNames: Readonly<Record<string, string>>,
): string | undefined {
  const misspelled = name.toLowerCase();
  const foreign = Object.hasOwn(compatNames, misspelled) ? compatNames[misspelled] : undefined;
  if (foreign !== undefined && known.includes(foreign)) return foreign;
  // No misspelling of our names is that long, and the distance costs time in proportion.
  if (misspelled.length > 40) return undefined;
  const near = known.flatMap((candidate) =>
    [candidate, ...candidate.split('_').filter((word) => word.length > 3)]
      .map((part) => ({
        candidate,
        distance: editDistance(misspelled, part),
        maxDistance: Math.floor(part.length / 3),
      }))
      .filter(({ distance, maxDistance }) => distance <= maxDistance),
  );
  return near.toSorted((left, right) => left.distance - right.distance)[0]?.candidate;
}

/** Returns the Levenshtein distance: insertions, deletions and substitutions of single characters. */
export function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_value, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = previous[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[right.length]!;
}
