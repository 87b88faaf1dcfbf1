import { editDistance } from '@darkroom/core';

/** Prefixes that clients of other servers add or omit. */
const prefixes = ['/v1', '/api/v1', '/api'];
/** Characters. Computing the edit distance costs time in proportion. */
const maxPathLength = 100;

/**
 * Returns the route that a client most likely meant, or undefined: one that differs by a prefix (`/predict`,
 * `/api/v1/predict`), by a trailing slash, or, for routes without parameters, by a few characters.
 *
 * @param patterns paths of all routes, with parameters as `{id}` or `:id`.
 */
export function closestRoute(path: string, patterns: readonly string[]): string | undefined {
  if (path.length > maxPathLength) return undefined;
  const bare = path
    .toLowerCase()
    .replaceAll(/\/{2,}/g, '/')
    .replace(/(?!^)\/$/, '');
  const stripped = prefixes
    .filter((prefix) => bare.startsWith(`${prefix}/`))
    .map((prefix) => bare.slice(prefix.length));
  const candidates = [bare, ...stripped].flatMap((name) => [name, `/v1${name}`]).filter((name) => name !== path);
  const exact = candidates.find((name) => patterns.some((pattern) => isMatch(pattern, name)));
  if (exact !== undefined) return exact;
  const fixed = [...new Set(patterns)].filter((pattern) => !/[{:*]/.test(pattern));
  const [nearest] = fixed
    .flatMap((name) => [bare, `/v1${bare}`].map((wanted) => ({ name, distance: editDistance(wanted, name) })))
    .filter(({ name, distance }) => distance <= Math.min(2, Math.floor(name.length / 4)))
    .toSorted((left, right) => left.distance - right.distance);
  return nearest?.name;
}

/** Compares segment by segment; a parameter matches any segment that is not empty. */
function isMatch(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((segment, at) => (isParameter(segment) ? given[at] !== '' : segment === given[at]))
  );
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{') || segment.startsWith(':');
}
