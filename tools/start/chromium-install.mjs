import { existsSync } from 'node:fs';
import { installWithApt } from './install-package.mjs';
import { findProgram } from './run-command.mjs';

/**
 * Returns the browser for the page's tests: `CHROMIUM`, one on PATH, or Debian's package. Undefined if there is none.
 */
export async function findOrInstallChromium(env = process.env) {
  if (env.CHROMIUM && existsSync(env.CHROMIUM)) return env.CHROMIUM;
  const find = () => findProgram('chromium', env) ?? findProgram('google-chrome', env);
  const why = 'Chromium was not found; the tests of the page run in it.';
  return find() ?? ((await installWithApt(['chromium'], env, why)) ? find() : undefined);
}
