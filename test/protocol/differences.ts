/** What was found beside what was expected, a line for each difference. */
export type Differences = string[];
export type Same = (what: string, found: unknown, expected: unknown) => void;

export function expectSame(differences: Differences, what: string, found: unknown, expected: unknown): void {
  // Hundreds of these for each transition, and nearly all the same.
  if (found === expected) return;
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  if (one !== other) differences.push(`${what}: the scripts have ${one}, the model ${other}`);
}
