// What the tests need that npm does not bring. What is missing is installed, all at once, where that may be done without
// asking; elsewhere whoever runs the tests is told how.
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installWithApt } from '../start/install-package.mjs';
import { findRedisProgram } from '../start/redis-install.mjs';
import { findProgram } from '../start/run-command.mjs';
import { SetupError } from '../start/say.mjs';

const program = (name) => ({ name, package: name, find: (env) => findProgram(name, env) });
const needs = [
  { name: 'redis-server', package: 'redis-server', find: findRedisProgram },
  { name: 'Chromium', package: 'chromium', find: findChromium },
  program('curl'),
];
/** What `npm run test:all` needs beside them. */
const needsOfAll = [
  program('openssl'),
  { ...program('pgrep'), package: 'procps' },
  { ...program('redis-cli'), package: 'redis-tools' },
  { ...program('pip3'), package: 'python3-pip' },
];

/**
 * The environment of the tests: on its PATH a `redis-server`, whatever it is called on this machine, and in `CHROMIUM` a
 * browser.
 *
 * @param scratch a directory of the run
 * @throws SetupError that names what is missing and says how to install it
 */
export async function provideTestPrograms({ scratch, isForAll = false, env = process.env }) {
  const wanted = isForAll ? [...needs, ...needsOfAll] : needs;
  const missing = () => wanted.filter(({ find }) => find(env) === undefined);
  if (missing().length > 0) {
    const why = `The tests need what is not here: ${missing()
      .map(({ name }) => name)
      .join(', ')}.`;
    await installWithApt(
      missing().map((need) => need.package),
      env,
      why,
    );
  }
  if (missing().length > 0) throw new SetupError(advice(missing()));
  return { ...env, PATH: pathWithRedis(findRedisProgram(env), scratch, env), CHROMIUM: findChromium(env) };
}

function advice(missing) {
  const [names, packages] = [missing.map(({ name }) => name), missing.map((need) => need.package)];
  return [
    `The tests need what is not here, and what cannot be installed without asking you: ${names.join(', ')}.`,
    `  Debian, Ubuntu   sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
    '  elsewhere        install them, and have them on PATH; CHROMIUM=<file> says where a browser is',
  ].join('\n');
}

function findChromium(env) {
  if (env.CHROMIUM && existsSync(env.CHROMIUM)) return env.CHROMIUM;
  return findProgram('chromium', env) ?? findProgram('google-chrome', env);
}

function pathWithRedis(file, scratch, env) {
  if (file.endsWith('redis-server')) return env.PATH;
  const directory = join(scratch, 'bin');
  mkdirSync(directory, { recursive: true });
  symlinkSync(file, join(directory, 'redis-server'));
  return `${directory}${delimiter}${env.PATH}`;
}
