import { findProgram, runCommand } from './run-command.mjs';
import { SetupError, say } from './say.mjs';

/**
 * Whether a program that is missing may be installed: `INSTALL_PACKAGES`, which is read before there are any processes whose
 * settings it could be one of.
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
 * Installs Debian packages where that can be done without asking anything; false if it cannot, or may not.
 *
 * @param why a sentence: what is missing, and what for
 */
export async function installWithApt(names, env, why) {
  const aptGet = findProgram('apt-get', env);
  if (!aptGet || !mayInstall(env)) return false;
  const asRoot = await commandPrefixForRoot(env);
  if (!asRoot) return false;
  const rights = asRoot.length === 0 ? 'as root' : 'as root, by sudo';
  const what = names.length === 1 ? `The package ${names[0]} is` : `The packages ${names.join(', ')} are`;
  say(`${why} ${what} now installed for the whole machine, with apt-get ${rights}.`);
  say('To stop that, press Ctrl-C. To never have anything installed, set INSTALL_PACKAGES=false.');
  const run = (...args) => {
    const [file, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', aptGet, ...args];
    return runCommand(file, rest, { env });
  };
  // A fresh machine has no package lists; one whose lists cannot be renewed may still have good ones.
  await run('update', '-qq');
  return run('install', '-y', '-qq', '--no-install-recommends', ...names);
}

/** Empty for root, `sudo -n` where sudo asks for no password, undefined otherwise. */
async function commandPrefixForRoot(env) {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo', env);
  return sudo && (await runCommand(sudo, ['-n', 'true'], { env, quiet: true })) ? [sudo, '-n'] : undefined;
}
