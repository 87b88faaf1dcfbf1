import { readFileSync } from 'node:fs';

/** The version of this app, from its package.json, which is as near to the sources as to what is built from them. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
