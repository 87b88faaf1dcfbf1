/** Startup of processes: over TLS, on a Redis whose maxmemory-policy evicts keys, and before Redis is available. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts, type RedisServer, startPrivateRedis, startRedisServer } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { make } from '../../e2e/client.ts';
import { openSystem, startSystem } from '../../e2e/system.ts';

const quick = { prompt: 'a fox', num_inference_steps: 4, preview: 'off' };

/** Starts a TLS-only server with a certificate for 127.0.0.1 by a test authority; as a Cluster if `isCluster`. */
async function startTlsServer(isCluster: boolean): Promise<{ port: number; server: RedisServer; ca: string }> {
  const [port = 0, busPort = 0] = await freePorts(2);
  const cluster = [
    '--cluster-enabled',
    'yes',
    '--tls-cluster',
    'yes',
    '--cluster-port',
    `${busPort}`,
    '--cluster-announce-ip',
    '127.0.0.1',
  ];
  const server = await startRedisServer({
    args(directory) {
      makeCertificates(directory);
      const files = ['--tls-cert-file', 'server.crt', '--tls-key-file', 'server.key', '--tls-ca-cert-file', 'ca.crt'];
      const options = ['--port', '0', '--tls-port', `${port}`, '--bind', '127.0.0.1', '--tls-auth-clients', 'no'];
      const socket = ['--unixsocket', join(directory, 'redis.sock'), '--requirepass', 'open sesame'];
      return [...options, ...files, ...socket, ...(isCluster ? cluster : [])];
    },
  });
  onTestFinished(() => server.stop());
  return { port, server, ca: join(server.directory, 'ca.crt') };
}

function makeCertificates(cwd: string): void {
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd, stdio: 'ignore' });
  const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=a test authority');
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-CA', 'ca.crt', '-CAkey', 'ca.key'];
  openssl('req', '-x509', ...key, '-keyout', 'server.key', '-out', 'server.crt', '-subj', '/CN=redis', ...names);
}

it.each([
  ['rediss', /"reason":"[^"]*certificate/],
  // The Cluster client does not report why no node answers.
  ['rediss-cluster', /"reason":"Connection is closed/],
])('connects over %s, and rejects a certificate of an unknown authority', async (scheme, reason) => {
  const { port, server, ca } = await startTlsServer(scheme !== 'rediss');
  const socket = join(server.directory, 'redis.sock');
  if (scheme !== 'rediss')
    execFileSync('redis-cli', ['-s', socket, '-a', 'open sesame', 'cluster', 'addslotsrange', '0', '16383'], {
      stdio: 'ignore',
    });
  const url = `${scheme}://:open%20sesame@127.0.0.1:${port}`;
  const storeUrl = `unix://${socket}?password=open%20sesame`;
  const environment = { REDIS_URL: url, NODE_EXTRA_CA_CERTS: ca };
  const system = await openSystem({ environment, storeUrl });
  expect((await make(system.url, quick)).byteLength).toBeGreaterThan(0);
  const api = await system.start('api', { NODE_EXTRA_CA_CERTS: '' });
  await expect.poll(() => readFileSync(system.logFile, 'utf8')).toMatch(reason);
  expect((await fetch(`${api.url}/health`)).status).toBe(503);
});

it.each(['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const)(
  '%s exits with the reason when maxmemory-policy of Redis is not noeviction',
  async (part) => {
    const redis = await startPrivateRedis(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
    onTestFinished(() => redis.stop());
    const starting = startSystem({ parts: [part], environment: { REDIS_URL: redis.url } });
    await expect(starting).rejects.toThrow(`${part} ended before it was ready`);
    const [, logFile = ''] = /see (\S+)/.exec(String(await starting.catch((error: unknown) => error))) ?? [];
    // The process may exit before its last log line is written.
    await expect
      .poll(() => readFileSync(logFile, 'utf8'))
      .toMatch(/"reason":"maxmemory-policy of this Redis is allkeys-lru, expected noeviction: /);
  },
);

it('starts before Redis is available and reports /health 503 until then', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  redis.process.kill('SIGKILL');
  const system = await startSystem({ parts: ['api'], environment: { REDIS_URL: redis.url } });
  onTestFinished(() => system.part('api').stop());
  const health = await fetch(`${system.url}/health`);
  expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([503, 'unavailable']);
  await redis.restart();
  await expect.poll(async () => (await fetch(`${system.url}/health`)).status).toBe(200);
  await system.store.close();
});
