/**
 * Appends a path to a root URL, which may have a path of its own: `new URL` would drop that.
 * @example urlBelow('https://example.com/darkroom/', '/v1/models') // 'https://example.com/darkroom/v1/models'
 */
export function urlBelow(root: string, path: string): string {
  return `${root.replace(/\/+$/, '')}${path}`;
}
