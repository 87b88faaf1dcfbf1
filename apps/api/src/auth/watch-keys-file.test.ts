/** Reloading API_KEYS_FILE while the API runs. */
import { renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@darkroom/service';
import { expect, it, onTestFinished } from 'vitest';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi } from '../testing/test-api.ts';
import { hashKey, loadApiKeys } from './api-keys.ts';
import { KeysFileWatch } from './watch-keys-file.ts';

type Fields = Record<string, unknown>;

const keyOf = (name: string): string => `secret-key-of-${name}`;

function contentOf(names: Record<string, Fields>): string {
  const keys = Object.entries(names).map(([name, fields]) => ({ name, sha256: hashKey(keyOf(name)), ...fields }));
  return JSON.stringify({ keys });
}

async function openWatched(names: Record<string, Fields>) {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-keys-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'keys.json');
  writeFileSync(path, contentOf(names));
  const settings = {
    apiKeys: [{ name: 'env', key: keyOf('env') }],
    adminKeys: [{ name: 'olga', key: keyOf('olga') }],
    apiKeysFile: path,
  };
  const keys = loadApiKeys(settings);
  const test = await openTestApi({ apiKeys: keys });
  const lines: string[] = [];
  const log = createLogger({ app: 'api', stream: { write: (line) => void lines.push(line) } });
  const watch = new KeysFileWatch({ settings, keys, log });
  await watch.runOnce();
  const headersOf = (name: string) => ({ Authorization: `Bearer ${keyOf(name)}`, 'Content-Type': 'application/json' });
  const statusOf = async (name: string): Promise<number> =>
    (await test.api.request('/v1/models', { headers: headersOf(name) })).status;
  return { directory, path, test, watch, lines, headersOf, statusOf };
}

it('revokes and adds keys and changes limits for the next request', async () => {
  const { path, test, watch, lines, headersOf, statusOf } = await openWatched({ ann: {}, bob: {} });
  writeFileSync(path, contentOf({ ann: { open_requests: 1 }, carol: {} }));
  await watch.runOnce();
  const names = ['ann', 'bob', 'carol', 'env', 'olga'];
  expect(await Promise.all(names.map(statusOf))).toEqual([200, 401, 200, 200, 200]);
  const submit = () =>
    test.api.request('/v1/predict', { method: 'POST', headers: headersOf('ann'), body: '{"prompt":"a"}' });
  expect([(await submit()).status, (await submit()).status]).toEqual([202, 429]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ added: 1, changed: 1, removed: 1 }),
  ]);
});

it('detects a changed file of the same size and mtime, and a moved symlink', async () => {
  const { directory, path, watch, statusOf } = await openWatched({ ann: {} });
  const time = new Date(1_700_000_000_000);
  utimesSync(path, time, time);
  await watch.runOnce();
  writeFileSync(path, contentOf({ bob: {} }));
  utimesSync(path, time, time);
  await watch.runOnce();
  expect([await statusOf('ann'), await statusOf('bob')]).toEqual([401, 200]);
  writeFileSync(join(directory, 'next.json'), contentOf({ ann: {} }));
  symlinkSync('next.json', join(directory, 'link'));
  renameSync(join(directory, 'link'), path);
  await watch.runOnce();
  expect([await statusOf('ann'), await statusOf('bob')]).toEqual([200, 401]);
});

it.each<[string, (path: string) => void]>([
  ['is no JSON', (path) => writeFileSync(path, '{"keys": [')],
  ['has no keys', (path) => writeFileSync(path, '{"keys": []}')],
  ['has a name of API_KEYS', (path) => writeFileSync(path, contentOf({ env: {} }))],
  ['is gone', (path) => unlinkSync(path)],
])('ignores a file that %s, and logs it once without keys', async (_what, spoil) => {
  const { path, watch, lines, statusOf } = await openWatched({ ann: {} });
  spoil(path);
  await watch.runOnce();
  await watch.runOnce();
  expect([await statusOf('ann'), await statusOf('env')]).toEqual([200, 200]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 'error', problems: [expect.stringContaining('API_KEYS_FILE')] }),
  ]);
  expect(lines.join('')).not.toMatch(/secret|[0-9a-f]{64}/);
  rmSync(path, { force: true });
  writeFileSync(path, contentOf({ bob: {} }));
  await watch.runOnce();
  expect([await statusOf('ann'), await statusOf('bob')]).toEqual([401, 200]);
});

it('ends only the open streams of a revoked key', async () => {
  const { path, test, watch, headersOf } = await openWatched({ ann: {}, bob: { weight: 2 } });
  const { url } = await listen(test);
  const open = async (name: string) => {
    const init = { headers: headersOf(name) };
    const submitted = await fetch(`${url}/v1/predict`, { ...init, method: 'POST', body: '{"prompt":"a fox"}' });
    const { request_id: id } = (await submitted.json()) as { request_id: string };
    const reader = readFrames(await fetch(`${url}/v1/predict/${id}/events`, init));
    expect((await reader.next())?.event).toBe('queued');
    return reader;
  };
  const [ann, bob] = [await open('ann'), await open('bob')];
  // A change of limits ends no stream; a later revocation does.
  writeFileSync(path, contentOf({ ann: { weight: 3 }, bob: { weight: 2 } }));
  await watch.runOnce();
  expect(test.hub.size).toBe(2);
  writeFileSync(path, contentOf({ bob: { weight: 2 } }));
  await watch.runOnce();
  await expect(ann.next()).rejects.toThrow('terminated');
  await expect.poll(() => test.hub.size).toBe(1);
  await bob.cancel();
});
