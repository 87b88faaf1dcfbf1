/** The known name that somebody who wrote `name` most likely meant, or undefined when none is near. `foreignNames` are ours by what other systems call them. */
export function closestName(
  name: string,
  known: readonly string[],
  foreignNames: Readonly<Record<string, string>>,
): string | undefined {
  const wanted = name.toLowerCase();
  const foreign = Object.hasOwn(foreignNames, wanted) ? foreignNames[wanted] : undefined;
  if (foreign !== undefined && known.includes(foreign)) return foreign;
  // Longer than any misspelling of ours, and the distance below costs time in proportion.
  if (wanted.length > 40) return undefined;
  const near = known.flatMap((candidate) =>
    [candidate, ...candidate.split('_').filter((word) => word.length > 3)]
      .map((part) => ({ candidate, distance: editDistance(wanted, part), most: Math.floor(part.length / 3) }))
      .filter(({ distance, most }) => distance <= most),
  );
  return near.toSorted((left, right) => left.distance - right.distance)[0]?.candidate;
}

/** Levenshtein's: single characters inserted, deleted or replaced. */
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
