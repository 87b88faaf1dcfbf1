import { installWithApt, mayInstall } from './install-package.mjs';
import { findProgram, runCommand } from './run-command.mjs';
import { say } from './say.mjs';

const why = 'There is no redis-server here, and the queue is kept in one.';

/** A Redis server program on PATH; Valkey speaks the same protocol and reads the same settings. */
export function findRedisProgram(env = process.env) {
  return findProgram('redis-server', env) ?? findProgram('valkey-server', env);
}

/** Finds a Redis server program, or installs one where that may be done without asking anything; undefined if not. */
export async function findOrInstallRedisProgram(env = process.env) {
  const found = findRedisProgram(env);
  if (found) return found;
  if (!(await installWithApt(['redis-server'], env, why))) await installWithBrew(env);
  return findRedisProgram(env);
}

async function installWithBrew(env) {
  const brew = findProgram('brew', env);
  if (!brew || !mayInstall(env)) return false;
  say(`${why} redis is now installed with brew; to have nothing installed, set INSTALL_PACKAGES=false.`);
  return runCommand(brew, ['install', '--quiet', 'redis'], { env: { ...env, NONINTERACTIVE: '1' } });
}
