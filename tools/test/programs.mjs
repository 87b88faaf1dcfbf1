// Programs that the tests need and npm does not install. Missing ones are installed in one go if that needs no
// password; otherwise an error names them.
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
  program('python3'),
];
/** Programs that `npm run test:all` needs in addition. */
const needsOfAll = [
  program('openssl'),
  program('nginx'),
  { ...program('pgrep'), package: 'procps' },
  { ...program('redis-cli'), package: 'redis-tools' },
  { ...program('pip3'), package: 'python3-pip' },
];

/**
 * Returns the environment of the tests: `redis-server` on PATH, whatever the program's name is here, and the browser in
 * `CHROMIUM`.
 *
 * @param scratch a temporary directory of the run
 * @throws SetupError that names the missing programs and how to install them
 */
export async function provideTestPrograms({ scratch, isForAll = false, env = process.env }) {
  const wanted = isForAll ? [...needs, ...needsOfAll] : needs;
  const missing = () => wanted.filter(({ find }) => find(env) === undefined);
  if (missing().length > 0) {
    const why = `The tests need programs that were not found: ${missing()
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
    `The tests need programs that were not found and could not be installed automatically: ${names.join(', ')}.`,
    `  Debian, Ubuntu   sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
    '  elsewhere        install them on PATH; CHROMIUM=<file> names the browser',
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
