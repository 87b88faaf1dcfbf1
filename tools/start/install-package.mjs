import { findProgram, runCommand } from './run-command.mjs';
import { say } from './say.mjs';

/** Installs a Debian package where that can be done without asking anything; false if it cannot. */
export async function installWithApt(name, env) {
  const aptGet = findProgram('apt-get', env);
  if (!aptGet) return false;
  const asRoot = await commandPrefixForRoot(env);
  if (!asRoot) return false;
  say(`installing the package ${name} with apt-get`);
  const run = (...args) => {
    const [file, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', aptGet, ...args];
    return runCommand(file, rest, { env });
  };
  // A fresh machine has no package lists; one whose lists cannot be renewed may still have good ones.
  await run('update', '-qq');
  return run('install', '-y', '-qq', '--no-install-recommends', name);
}

/** Empty for root, `sudo -n` where sudo asks for no password, undefined otherwise. */
async function commandPrefixForRoot(env) {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo', env);
  return sudo && (await runCommand(sudo, ['-n', 'true'], { env, quiet: true })) ? [sudo, '-n'] : undefined;
}
