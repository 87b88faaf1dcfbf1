import { editDistance } from '@darkroom/core';

/**
 * Suggests settings for unknown environment variables with similar names. Compares only names with an underscore,
 * because an environment is full of short names, and skips settings that are set.
 */
export function findMisspelledVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const wanted = known.filter((name) => name.includes('_') && !environment[name]);
  const problems: string[] = [];
  for (const variable of Object.keys(environment).toSorted()) {
    if (known.includes(variable) || !environment[variable]) continue;
    const [nearest] = wanted
      .map((name) => ({ name, distance: editDistance(bareName(variable), bareName(name)) }))
      .filter(({ name, distance }) => distance <= (name.length < 9 ? 0 : name.length < 13 ? 1 : 2))
      .toSorted((left, right) => left.distance - right.distance);
    if (nearest) problems.push(`${variable} is not a setting; did you mean ${nearest.name}?`);
  }
  return problems;
}

/** Ignores case and underscores, the most common mistakes. */
function bareName(name: string): string {
  return name.replaceAll('_', '').toUpperCase();
}
