import { execSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { startFixture } from './started-process.ts';

const redisServer = execSync('command -v redis-server', { encoding: 'utf8' }).trim();

function scratchDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-start-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Runs one command against the private Redis of a directory, stops it, and returns the reply. */
async function askOnce(directory: string, ...command: string[]): Promise<string> {
  const redis = startFixture('redis.mjs', [directory, ...command]);
  const [, reply = ''] = await redis.output(/reply (.*)\n/);
  redis.child.kill('SIGTERM');
  expect(await redis.end).toMatchObject({ code: 0 });
  return reply;
}

describe('the private Redis of npm start', () => {
  it('keeps its data from one start to the next', async () => {
    const directory = scratchDirectory();
    expect(await askOnce(directory, 'SET', 'kept', 'value')).toBe('+OK');
    expect(await askOnce(directory, 'STRLEN', 'kept')).toBe(':5');
  });

  it('restarts with its data when its process is killed', async () => {
    const directory = scratchDirectory();
    const redis = startFixture('redis.mjs', [directory, 'SET', 'kept', 'value']);
    const [, guard] = await redis.output(/guarded by (\d+)/);
    await redis.output(/reply \+OK/);
    process.kill(Number(guard), 'SIGKILL');
    await redis.output(/redis died[^]*restarting redis in/);
    redis.child.kill('SIGTERM');
    await redis.end;
    expect(await askOnce(directory, 'STRLEN', 'kept')).toBe(':5');
  });

  it('ends when the launcher is killed', async () => {
    const directory = scratchDirectory();
    const redis = startFixture('redis.mjs', [directory, 'PING']);
    await redis.output(/reply \+PONG/);
    redis.child.kill('SIGKILL');
    // The guard and the server hold the launcher's standard output open until they end.
    await redis.end;
    expect(await askOnce(directory, 'PING')).toBe('+PONG');
  });

  it('replaces a server that was left running', async () => {
    const directory = scratchDirectory();
    const redis = startFixture('redis.mjs', [directory, 'SET', 'kept', 'value']);
    const [, guard] = await redis.output(/guarded by (\d+)/);
    await redis.output(/reply \+OK/);
    redis.child.kill('SIGSTOP');
    process.kill(Number(guard), 'SIGKILL');
    redis.child.kill('SIGKILL');
    expect(await askOnce(directory, 'STRLEN', 'kept')).toBe(':5');
    await redis.end;
  });

  it('listens on a port with a password when the path is too long for a Unix socket', async () => {
    const directory = join(scratchDirectory(), 'a-long-name'.repeat(10));
    const redis = startFixture('redis.mjs', [directory, 'SET', 'kept', 'value']);
    const [, port] = await redis.output(/private redis:\/\/:[0-9a-f]{48}@127\.0\.0\.1:(\d+)/);
    await redis.output(/reply \+OK/);
    const withoutPassword = startFixture('redis.mjs', [directory, 'PING'], { REDIS_URL: `redis://127.0.0.1:${port}` });
    expect(await withoutPassword.end).toMatchObject({
      code: 1,
      output: expect.stringContaining('refused the connection: NOAUTH'),
    });
    redis.child.kill('SIGTERM');
    await redis.end;
    expect(await askOnce(directory, 'STRLEN', 'kept')).toBe(':5');
  });
});

describe('finding a Redis', () => {
  it('uses the Redis that REDIS_URL names', async () => {
    const url = inject('redisUrl');
    const { code, output } = await startFixture('redis.mjs', [scratchDirectory(), 'PING'], { REDIS_URL: url }).end;
    expect(output).toContain(`named ${url}`);
    expect(output).toContain('reply +PONG');
    expect(code).toBe(0);
  });

  it('fails when the Redis of REDIS_URL cannot be reached', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    server.close();
    await once(server, 'close');
    const port = typeof address === 'object' ? address?.port : undefined;
    const { code, output } = await startFixture('redis.mjs', [scratchDirectory(), 'PING'], {
      REDIS_URL: `redis://127.0.0.1:${port}`,
    }).end;
    expect(code).toBe(1);
    expect(output).toContain('The Redis of REDIS_URL cannot be reached');
  });

  it('uses valkey-server when there is no redis-server', async () => {
    const path = join(scratchDirectory(), 'bin');
    mkdirSync(path);
    symlinkSync(redisServer, join(path, 'valkey-server'));
    const redis = startFixture('redis.mjs', [scratchDirectory(), 'PING'], { PATH: path });
    await expect(redis.output(/using \S+valkey-server/)).resolves.toBeTruthy();
    redis.child.kill('SIGTERM');
    await redis.end;
  });

  it('installs redis-server with apt-get if sudo needs no password, and announces it before', async () => {
    const redis = startFixture('redis.mjs', [scratchDirectory(), 'PING'], { PATH: pathWithAptGet() });
    await redis.output(/reply \+PONG/);
    redis.child.kill('SIGTERM');
    const { code, output } = await redis.end;
    expect(code).toBe(0);
    const [announced, called] = [output.slice(0, output.indexOf('called:')), output.slice(output.indexOf('called:'))];
    expect(announced).toContain('redis-server was not found; it stores the queue.');
    expect(announced).toMatch(/package redis-server is now installed for the whole machine, with apt-get as root/);
    expect(announced).toContain('Press Ctrl-C to prevent it. Set INSTALL_PACKAGES=false to never install packages.');
    expect(called).toMatch(/called: apt-get update [^]*called: apt-get install .* redis-server\n/);
  });

  it('installs nothing when INSTALL_PACKAGES=false', async () => {
    const environment = { PATH: pathWithAptGet(), INSTALL_PACKAGES: 'false' };
    const { code, output } = await startFixture('redis.mjs', [scratchDirectory(), 'PING'], environment).end;
    expect(code).toBe(1);
    expect(output).not.toContain('called:');
    expect(output).toContain('No Redis was found, and none could be installed automatically');
  });

  it('refuses a value of INSTALL_PACKAGES other than true or false', async () => {
    const environment = { PATH: pathWithAptGet(), INSTALL_PACKAGES: 'no' };
    const { code, output } = await startFixture('redis.mjs', [scratchDirectory(), 'PING'], environment).end;
    expect(code).toBe(1);
    expect(output).toBe('INSTALL_PACKAGES is "no", expected true or false\n');
  });

  it('lists ways to install Redis when it cannot install one', async () => {
    const path = scratchDirectory();
    // The Docker client is there but its daemon does not run.
    writeProgram(join(path, 'docker'), 'exit 1');
    const { code, output } = await startFixture('redis.mjs', [scratchDirectory(), 'PING'], { PATH: path }).end;
    expect(code).toBe(1);
    expect(output).toMatch(/No Redis was found[^]*apt-get install redis-server[^]*brew install redis[^]*REDIS_URL=/);
  });
});

/** Returns a PATH with an apt-get that prints its arguments and links a redis-server. */
function pathWithAptGet(): string {
  const path = join(scratchDirectory(), 'bin');
  mkdirSync(path);
  symlinkSync('/usr/bin/env', join(path, 'env'));
  const install = `[ "$1" = update ] || /bin/ln -s ${redisServer} ${join(path, 'redis-server')}`;
  writeProgram(join(path, 'apt-get'), `echo "called: apt-get $*"; ${install}`);
  writeProgram(join(path, 'sudo'), 'shift; exec "$@"');
  writeProgram(join(path, 'true'), 'exit 0');
  return path;
}

function writeProgram(file: string, script: string): void {
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}
