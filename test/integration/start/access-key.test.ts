import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isLoopback } from '@darkroom/config';
import { expect, it, onTestFinished } from 'vitest';

type ProvideAccessKey = (options: {
  file: string;
  isLoopback: (host: string) => boolean;
  environment: Record<string, string>;
}) => string | undefined;
// Plain JavaScript: it runs before anything is built.
const path = '../../../tools/start/access-key.mjs';
const { provideAccessKey } = (await import(path)) as { provideAccessKey: ProvideAccessKey };

function keyFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-key-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, '.darkroom/key');
}

const beyond = { HOST: '0.0.0.0' };

it('makes a key that only its owner can read, and returns the same key at the next start', () => {
  const file = keyFile();
  const key = provideAccessKey({ file, isLoopback, environment: beyond });
  expect(key).toMatch(/^[\w-]{32}$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(provideAccessKey({ file, isLoopback, environment: { ...beyond, OPEN_ACCESS: 'false' } })).toBe(key);
  expect(provideAccessKey({ file: keyFile(), isLoopback, environment: beyond })).not.toBe(key);
});

it.each<Record<string, string>>([
  {},
  { HOST: '' },
  { HOST: '127.0.0.1' },
  { HOST: 'localhost' },
  { ...beyond, API_KEYS: 'alice:secret-of-alice-1' },
  { ...beyond, API_KEYS_FILE: 'keys.json' },
  { ...beyond, OPEN_ACCESS: 'true' },
])('makes no key with the settings %o', (environment) => {
  expect(provideAccessKey({ file: keyFile(), isLoopback, environment })).toBeUndefined();
});
