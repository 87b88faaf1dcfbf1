import { installWithApt } from './install-package.mjs';
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
  if (!(await installWithApt('redis-server', env))) await installWithBrew(env);
  return findRedisProgram(env);
}

async function installWithBrew(env) {
  const brew = findProgram('brew', env);
  if (!brew) return false;
  say('there is no redis-server: installing redis with brew');
  return runCommand(brew, ['install', '--quiet', 'redis'], { env: { ...env, NONINTERACTIVE: '1' } });
}
