/** Differences between what was found and what was expected, one line each. */
export type Differences = string[];
export type Same = (label: string, found: unknown, expected: unknown) => void;

export function expectSame(differences: Differences, label: string, found: unknown, expected: unknown): void {
  // Fast path: called hundreds of times per transition, and nearly always equal.
  if (found === expected) return;
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  if (one !== other) differences.push(`${label}: the scripts have ${one}, the model ${other}`);
}
