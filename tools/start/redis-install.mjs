import { installWithApt, mayInstall } from './install-package.mjs';
import { findProgram, runCommand } from './run-command.mjs';
import { say } from './say.mjs';

const why = 'redis-server was not found; it stores the queue.';

/** Returns a Redis server program on PATH. Valkey has the same protocol and settings. */
export function findRedisProgram(env = process.env) {
  return findProgram('redis-server', env) ?? findProgram('valkey-server', env);
}

/** Finds a Redis server program, or installs one without asking for a password. Returns undefined if it cannot. */
export async function findOrInstallRedisProgram(env = process.env) {
  const found = findRedisProgram(env);
  if (found) return found;
  if (!(await installWithApt(['redis-server'], env, why))) await installWithBrew(env);
  return findRedisProgram(env);
}

async function installWithBrew(env) {
  const brew = findProgram('brew', env);
  if (!brew || !mayInstall(env)) return false;
  say(`${why} redis is now installed with brew. Set INSTALL_PACKAGES=false to never install packages.`);
  return runCommand(brew, ['install', '--quiet', 'redis'], { env: { ...env, NONINTERACTIVE: '1' } });
}
