import { findProgram, runCommand } from './run-command.mjs';
import { SetupError, say } from './say.mjs';

/**
 * Returns whether missing programs may be installed: `INSTALL_PACKAGES`. Read here and not by libs/config, since it
 * applies before anything is built.
 *
 * @throws SetupError if it is neither true nor false.
 */
export function mayInstall(env) {
  const { INSTALL_PACKAGES: answer = '' } = env;
  if (answer === '' || answer === 'true') return true;
  if (answer === 'false') return false;
  throw new SetupError(`INSTALL_PACKAGES is ${JSON.stringify(answer)}, expected true or false`);
}

/**
 * Installs Debian packages without asking for a password. Returns false if it cannot or may not.
 *
 * @param why a sentence: the missing program and its purpose
 */
export async function installWithApt(names, env, why) {
  const aptGet = findProgram('apt-get', env);
  if (!aptGet || !mayInstall(env)) return false;
  const asRoot = await commandPrefixForRoot(env);
  if (!asRoot) return false;
  const rights = asRoot.length === 0 ? 'as root' : 'as root, by sudo';
  const what = names.length === 1 ? `The package ${names[0]} is` : `The packages ${names.join(', ')} are`;
  say(`${why} ${what} now installed for the whole machine, with apt-get ${rights}.`);
  say('Press Ctrl-C to prevent it. Set INSTALL_PACKAGES=false to never install packages.');
  const run = (...args) => {
    const [file, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', aptGet, ...args];
    return runCommand(file, rest, { env });
  };
  // A fresh machine has no package lists. If the update fails, the existing lists may still be good.
  await run('update', '-qq');
  return run('install', '-y', '-qq', '--no-install-recommends', ...names);
}

/** Returns an empty prefix for root, `sudo -n` if sudo needs no password, else undefined. */
async function commandPrefixForRoot(env) {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo', env);
  return sudo && (await runCommand(sudo, ['-n', 'true'], { env, quiet: true })) ? [sudo, '-n'] : undefined;
}
