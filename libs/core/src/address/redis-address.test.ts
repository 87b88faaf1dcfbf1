import { expect, it } from 'vitest';
import { parseRedisUrl } from './redis-address.ts';

it('passes the URL of a single server through to the Redis client', () => {
  const url = 'rediss://user:p%40ss@redis.example:6380/2';
  expect(parseRedisUrl(url)).toEqual({ kind: 'single', url });
  expect(parseRedisUrl('unix:///run/redis.sock')).toEqual({ kind: 'socket', path: '/run/redis.sock' });
});

it('parses the nodes of a Cluster, with the default port', () => {
  expect(parseRedisUrl('redis-cluster://10.0.0.1:7000,node-2.example,[fd00::1]:7002')).toEqual({
    kind: 'cluster',
    isTls: false,
    hosts: [
      { host: '10.0.0.1', port: 7000 },
      { host: 'node-2.example', port: 6379 },
      { host: 'fd00::1', port: 7002 },
    ],
  });
});

it('parses Sentinels, the name of the master, and its credentials', () => {
  expect(parseRedisUrl('rediss-sentinel://worker:p%40ss%3A%2F@a,b:26380/mymaster')).toEqual({
    kind: 'sentinel',
    isTls: true,
    username: 'worker',
    password: 'p@ss:/',
    master: 'mymaster',
    hosts: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 26_380 },
    ],
  });
  expect(parseRedisUrl('redis-sentinel://:secret@a/m')).toMatchObject({ password: 'secret' });
});

it.each([
  'http://host',
  'redis://',
  'redis://a:6379,b:6379',
  'redis-cluster://',
  'redis-cluster://a:0',
  'redis-cluster://a:6379/2',
  'redis-cluster://a,,b',
  'redis-sentinel://a:26379',
  'redis-sentinel://a/',
  'redis-cluster://user:%@a',
])('rejects %s', (url) => expect(parseRedisUrl(url)).toBeUndefined());
