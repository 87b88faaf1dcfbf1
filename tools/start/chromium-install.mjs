import { existsSync } from 'node:fs';
import { installWithApt } from './install-package.mjs';
import { findProgram } from './run-command.mjs';

/** The browser of the page's tests: `CHROMIUM`, or one on PATH, or Debian's package; undefined where none can be had. */
export async function findOrInstallChromium(env = process.env) {
  if (env.CHROMIUM && existsSync(env.CHROMIUM)) return env.CHROMIUM;
  const find = () => findProgram('chromium', env) ?? findProgram('google-chrome', env);
  const why = 'There is no Chromium here, which the tests of the pages run in.';
  return find() ?? ((await installWithApt(['chromium'], env, why)) ? find() : undefined);
}
