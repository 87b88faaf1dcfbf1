import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readVersion } from './read-version.ts';

it('finds the version that the package says', () => {
  const { version } = JSON.parse(readFileSync('apps/worker/package.json', 'utf8')) as { version: string };
  expect(readVersion()).toBe(version);
});
