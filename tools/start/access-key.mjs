// An API that other machines reach requires a key. If no setting says which, the launcher makes one.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Returns the key that `API_KEYS` must contain, from the file or new. Returns undefined if only this machine reaches
 * the API, or if the environment states who may use it.
 */
export function provideAccessKey({ file, isLoopback, environment }) {
  const [host, ...access] = ['HOST', 'API_KEYS', 'API_KEYS_FILE', 'OPEN_ACCESS'].map((name) =>
    environment[name]?.trim(),
  );
  const isStated = access.some((value) => value && !/^(?:false|0)$/i.test(value));
  if (!host || isLoopback(host) || isStated) return undefined;
  const stored = readOrUndefined(file);
  if (stored) return stored;
  const key = randomBytes(24).toString('base64url');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${key}\n`, { mode: 0o600 });
  return key;
}

function readOrUndefined(file) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}
