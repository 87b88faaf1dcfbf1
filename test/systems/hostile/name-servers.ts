/** Image URLs with names of a name server that never answers. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type AttackGroup, post, type Target } from './attack.ts';

const urls = 60;

/** Opens a name server that receives queries and never answers; `execPath` is a Node that knows no other. */
async function openSilentNameServer(): Promise<{ execPath: string; close(): Promise<void> }> {
  const server = createSocket('udp4');
  server.bind(53, `127.${process.pid % 250}.${Date.now() % 250}.53`);
  await once(server, 'listening');
  const directory = await mkdtemp(join(tmpdir(), 'name-server-'));
  const [resolvConf, execPath] = [join(directory, 'resolv.conf'), join(directory, 'node')];
  await writeFile(resolvConf, `nameserver ${server.address().address}\n`);
  // A mount namespace of its own: the rest of the machine keeps its name servers.
  const mounted = `mount --bind ${resolvConf} /etc/resolv.conf && exec ${process.execPath} "$@"`;
  await writeFile(execPath, `#!/bin/sh\nexec unshare --mount sh -c '${mounted}' sh "$@"\n`);
  await chmod(execPath, 0o755);
  return {
    execPath,
    async close() {
      server.close();
      await rm(directory, { recursive: true });
    },
  };
}

async function draw(target: Target, name: string): Promise<number> {
  const body = { model: 'emoji-sd', prompt: 'a red apple', image: `https://${name}.example.com/x.png` };
  return (await post(target, '/v1/predict', body)).status;
}

export const nameServers: AttackGroup = {
  topic: 'silent name servers',
  openRuntime: openSilentNameServer,
  attacks: [
    {
      title: 'serves others while a name server answers none of the names of image URLs',
      async run(target) {
        let answered = 0;
        const attack = Array.from({ length: urls }, async (_value, at) => {
          const status = await draw(target, `image-${at}`);
          answered += 1;
          return status;
        });
        // Another client's names are looked up meanwhile, not after all of these.
        expect(await draw({ ...target, headers: target.otherHeaders }, 'another')).toBe(400);
        console.info(`${answered} of ${urls} were answered before another client's`);
        expect(answered).toBeLessThan(urls);
        // Names that do not resolve are the client's problem; more of them than may wait are refused for now.
        const statuses = await Promise.all(attack);
        for (const status of statuses) expect([400, 429, 503]).toContain(status);
        expect(statuses).toContain(400);
      },
    },
  ],
};
