/** Limit on wrong keys per address. */
import { createLogger } from '@darkroom/service';
import { expect, it } from 'vitest';
import { listen } from '../testing/listen.ts';
import { openTestApi } from '../testing/test-api.ts';
import { anonymousKey, hashKey } from './api-keys.ts';
import { WrongKeyLimit, wrongKeysPerWindow } from './limit-wrong-keys.ts';

function openLimit() {
  const clock = { nowMs: 0, now: () => clock.nowMs };
  const log = createLogger({ app: 'api', stream: { write: () => {} } });
  const limit = new WrongKeyLimit({ clock, log });
  /** Returns the statuses of `count` wrong keys in a row. */
  const statusesOf = (address: string, count: number): (number | undefined)[] =>
    Array.from({ length: count }, () => limit.count(address)?.status);
  return { clock, limit, statusesOf };
}

const allowed = Array.from({ length: wrongKeysPerWindow }, () => undefined);

it('limits an address after ten wrong keys until the end of the minute, and no other address', () => {
  const { clock, limit, statusesOf } = openLimit();
  expect(statusesOf('1.2.3.4', wrongKeysPerWindow + 2)).toEqual([...allowed, 429, 429]);
  expect(statusesOf('1.2.3.5', 1)).toEqual([undefined]);
  clock.nowMs = 20_500;
  expect(limit.count('1.2.3.4')?.headers).toEqual({ 'Retry-After': '40' });
  clock.nowMs = 60_000;
  expect(statusesOf('1.2.3.4', 1)).toEqual([undefined]);
});

it('counts an IPv6 /64 as one address, and IPv4-mapped addresses separately', () => {
  const { statusesOf } = openLimit();
  expect(statusesOf('2001:db8:0:1::a', wrongKeysPerWindow)).toEqual(allowed);
  expect(statusesOf('2001:db8:0:1:5:6:7:8', 1)).toEqual([429]);
  expect(statusesOf('2001:db8::1:0:0:0:9', 1)).toEqual([429]);
  expect(statusesOf('2001:db8:0:2::a', 1)).toEqual([undefined]);
  expect(statusesOf('::ffff:1.2.3.4', wrongKeysPerWindow + 1)).toEqual([...allowed, 429]);
  expect(statusesOf('::ffff:1.2.3.5', 1)).toEqual([undefined]);
});

it('counts a bounded number of addresses, and all others together', () => {
  const { statusesOf } = openLimit();
  for (let address = 0; address < 10_000; address++) statusesOf(`a${address}`, 1);
  expect(Array.from({ length: wrongKeysPerWindow + 1 }, (_value, each) => statusesOf(`b${each}`, 1)[0])).toEqual([
    ...allowed,
    429,
  ]);
  expect(statusesOf('a0', 1)).toEqual([undefined]);
});

it('answers 429 to wrong keys beyond the limit on every route, but serves valid keys from the same address', async () => {
  const right = 'the-right-key-of-ann';
  const key = { ...anonymousKey, name: 'ann' };
  const admin = { ...anonymousKey, name: 'olga', isAdmin: true };
  const apiKeys = new Map([
    [hashKey(right), key],
    [hashKey('the-key-of-an-admin'), admin],
  ]);
  const test = await openTestApi({ apiKeys });
  const { url } = await listen(test);
  const ask = async (authorization: string | undefined, path = '/v1/models') => {
    const headers = new Headers(authorization === undefined ? [] : [['authorization', authorization]]);
    const response = await fetch(url + path, { headers });
    return [response.status, response.headers.get('retry-after') !== null];
  };
  for (let sent = 0; sent < wrongKeysPerWindow; sent++) expect(await ask(`Bearer wrong-${sent}`)).toEqual([401, false]);
  const basic = `Basic ${Buffer.from('olga:wrong').toString('base64')}`;
  expect([
    await ask('Bearer wrong'),
    await ask('Bearer wrong', '/admin/dead-requests'),
    await ask(basic, '/admin/queues'),
    await ask('Bearer wrong', '/nowhere'),
  ]).toEqual(Array.from({ length: 4 }, () => [429, true]));
  expect([await ask(`Bearer ${right}`), await ask(undefined), await ask('Bearer wrong', '/health')]).toEqual([
    [200, false],
    [401, false],
    [200, false],
  ]);
  expect(test.lines.join('')).not.toContain('wrong-');
});
