import { findProgram, runCommand } from './run-command.mjs';
import { say } from './say.mjs';

/** A Redis server program on PATH; Valkey speaks the same protocol and reads the same settings. */
export function findRedisProgram(env = process.env) {
  return findProgram('redis-server', env) ?? findProgram('valkey-server', env);
}

/** Finds a Redis server program, or installs one where that can be done without asking anything; undefined if not. */
export async function findOrInstallRedisProgram(env = process.env) {
  const found = findRedisProgram(env);
  if (found) return found;
  if (!(await installWithApt(env))) await installWithBrew(env);
  return findRedisProgram(env);
}

async function installWithApt(env) {
  const aptGet = findProgram('apt-get', env);
  if (!aptGet) return false;
  const asRoot = await commandPrefixForRoot(env);
  if (!asRoot) return false;
  say('there is no redis-server: installing the package redis-server with apt-get');
  const run = (...args) => {
    const [file, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', aptGet, ...args];
    return runCommand(file, rest, { env });
  };
  // A fresh machine has no package lists; one whose lists cannot be renewed may still have good ones.
  await run('update', '-qq');
  return run('install', '-y', '-qq', '--no-install-recommends', 'redis-server');
}

/** Empty for root, `sudo -n` where sudo asks for no password, undefined otherwise. */
async function commandPrefixForRoot(env) {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo', env);
  return sudo && (await runCommand(sudo, ['-n', 'true'], { env, quiet: true })) ? [sudo, '-n'] : undefined;
}

async function installWithBrew(env) {
  const brew = findProgram('brew', env);
  if (!brew) return false;
  say('there is no redis-server: installing redis with brew');
  return runCommand(brew, ['install', '--quiet', 'redis'], { env: { ...env, NONINTERACTIVE: '1' } });
}
