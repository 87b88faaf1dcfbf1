/** Lookups through real name servers on this machine. */
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createHostResolver } from './resolve-host.ts';

interface NameServer {
  address: string;
  /** Queried names, in order. */
  queried: string[];
}

/** Starts a name server for A and AAAA records; a query for which `recordsOf` returns undefined gets no answer. */
async function startNameServer(
  recordsOf: (name: string, type: 'A' | 'AAAA') => string[] | undefined,
): Promise<NameServer> {
  const socket = createSocket('udp4');
  const queried: string[] = [];
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    const isV6 = query.readUInt16BE(at + 1) === 28;
    const name = labels.join('.');
    queried.push(name);
    const records = recordsOf(name, isV6 ? 'AAAA' : 'A');
    if (records === undefined) return;
    const answers = records.map((record) => {
      const data = isV6 ? Buffer.from(record.replaceAll(':', ''), 'hex') : Buffer.from(record.split('.').map(Number));
      const head = Buffer.from(isV6 ? 'c00c001c00010000003c0010' : 'c00c000100010000003c0004', 'hex');
      return Buffer.concat([head, data]);
    });
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(records.length === 0 ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return { address: `127.0.0.1:${socket.address().port}`, queried };
}

async function writeText(text: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'darkroom-names-')), 'file');
  await writeFile(path, text);
  return path;
}

const publicOnly = { useSearchDomains: false };

it('returns IPv4 and IPv6 addresses', async () => {
  const server = await startNameServer((_name, type) =>
    type === 'A' ? ['1.2.3.4', '5.6.7.8'] : ['2606:4700:0000:0000:0000:0000:0000:1111'],
  );
  const resolve = createHostResolver({ servers: [server.address] });
  expect(await resolve('images.example.com', publicOnly)).toEqual([
    { address: '1.2.3.4', family: 4 },
    { address: '5.6.7.8', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]);
});

it('returns the addresses of one family when queries of the other get no answer', async () => {
  const server = await startNameServer((_name, type) => (type === 'A' ? ['1.2.3.4'] : undefined));
  const resolve = createHostResolver({ servers: [server.address], timeoutMs: 200 });
  expect(await resolve('images.example.com', publicOnly)).toEqual([{ address: '1.2.3.4', family: 4 }]);
});

it('rejects with ENOTFOUND for an unknown name, and with ETIMEOUT when no name server answers', async () => {
  const server = await startNameServer(() => []);
  const resolve = createHostResolver({ servers: [server.address] });
  await expect(resolve('nothing.example.com', publicOnly)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  const silent = await startNameServer(() => undefined);
  const resolveBriefly = createHostResolver({ servers: [silent.address], timeoutMs: 50 });
  await expect(resolveBriefly('nothing.example.com', publicOnly)).rejects.toMatchObject({ code: 'ETIMEOUT' });
});

it('does not block other lookups of the process while name servers do not answer', async () => {
  const silent = await startNameServer(() => undefined);
  const resolve = createHostResolver({ servers: [silent.address], timeoutMs: 3000 });
  let settled = 0;
  const pending = Array.from({ length: 200 }, (_, index) =>
    resolve(`name${index}.example.com`, publicOnly).catch(() => (settled += 1)),
  );
  await expect.poll(() => silent.queried.length).toBeGreaterThan(200);
  // Connections to Redis look up their host in this way.
  await lookup('localhost');
  expect(settled).toBe(0);
  await Promise.all(pending);
});

it('reads the hosts file first, and resolves localhost without it', async () => {
  const server = await startNameServer(() => ['9.9.9.9']);
  const hostsPath = await writeText('# names\n10.1.2.3 Storage storage.example.com # ours\nfd00::1\tstorage\n');
  const resolve = createHostResolver({ servers: [server.address], hostsPath });
  expect(await resolve('STORAGE', publicOnly)).toEqual([
    { address: '10.1.2.3', family: 4 },
    { address: 'fd00::1', family: 6 },
  ]);
  expect(await resolve('storage.example.com.', publicOnly)).toEqual([{ address: '10.1.2.3', family: 4 }]);
  expect(await resolve('app.localhost', publicOnly)).toEqual([
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);
  expect(server.queried).toEqual([]);
});

it("appends the system's search domains to short names when private networks are allowed", async () => {
  const server = await startNameServer((name) => (name === 'hook.jobs.svc.cluster.local' ? ['10.0.0.7'] : []));
  const resolvConfPath = await writeText(
    'nameserver 127.0.0.1\nsearch svc.cluster.local cluster.local.\noptions edns0 ndots:5\n',
  );
  const resolve = createHostResolver({ servers: [server.address], resolvConfPath, hostsPath: '/nowhere' });
  expect(await resolve('hook.jobs', { useSearchDomains: true })).toEqual([{ address: '10.0.0.7', family: 4 }]);
  await expect(resolve('hook.jobs', publicOnly)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  await expect(resolve('hook.', { useSearchDomains: true })).rejects.toMatchObject({ code: 'ENOTFOUND' });
  expect(new Set(server.queried)).toEqual(new Set(['hook.jobs.svc.cluster.local', 'hook.jobs', 'hook']));
});
