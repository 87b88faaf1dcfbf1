import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from './run-command.mjs';
import { SetupError, say } from './say.mjs';

/** Installs the packages if there are none, or if package-lock.json is newer than the installed ones. */
export async function installDependencies(root) {
  const wanted = modifiedMs(join(root, 'package-lock.json'));
  const installed = modifiedMs(join(root, 'node_modules/.package-lock.json'));
  if (installed >= wanted && installed > 0) return;
  say(
    installed === 0 ? 'installing dependencies (npm ci)' : 'package-lock.json has changed: installing again (npm ci)',
  );
  // NODE_ENV=production would skip TypeScript, a development dependency.
  if (!(await runCommand('npm', ['ci', '--include=dev'], { cwd: root })))
    throw new SetupError('npm ci failed; see its output above.');
}

/** Builds everything, like `npm run build`. */
export async function build(root) {
  await compile(root);
  await buildPage(root);
}

/** Files that exist once a package is built, where that is not the compiler's tsconfig.tsbuildinfo. */
const builtOf = { page: 'dist/client.html' };

/**
 * Builds if a source has changed since the last build. Checks by modification times, since the compiler and Vite take
 * most of a second to find out.
 */
export async function buildWhatChanged(root) {
  const stamp = join(root, '.darkroom/built');
  const began = new Date();
  // Folders without a package.json are remains of deleted packages.
  const packages = ['apps', 'libs']
    .flatMap((kind) => list(join(root, kind)))
    .filter(({ path }) => existsSync(join(path, 'package.json')));
  const isBuilt = packages.every(({ name, path }) => existsSync(join(path, builtOf[name] ?? 'tsconfig.tsbuildinfo')));
  if (isBuilt && modifiedMs(stamp) > newestMs(root, packages)) return;
  await build(root);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, '');
  // A file that changes during the build is newer than the stamp and is built the next time.
  utimesSync(stamp, began, began);
}

/** Returns the newest modification time of all inputs of the build. */
function newestMs(root, packages) {
  const files = [root, ...packages.map(({ path }) => path)].flatMap((path) => list(path));
  const own = files
    .filter((file) => file.isFile() && !file.name.endsWith('.tsbuildinfo'))
    .map(({ path }) => modifiedMs(path));
  const installed = modifiedMs(join(root, 'node_modules/.package-lock.json'));
  return Math.max(installed, ...own, ...packages.map(({ path }) => newestBelowMs(join(path, 'src'))));
}

/** Includes directories: their modification time changes when a file is removed. */
function newestBelowMs(path) {
  const inside = list(path).map((file) => (file.isDirectory() ? newestBelowMs(file.path) : modifiedMs(file.path)));
  return Math.max(modifiedMs(path), ...inside);
}

function list(path) {
  return readdirSync(path, { withFileTypes: true }).map((entry) =>
    Object.assign(entry, { path: join(path, entry.name) }),
  );
}

async function buildPage(root) {
  if (!(await runProgram(root, 'vite/bin/vite.js', 'build', 'apps/page')))
    throw new SetupError('The build of the page failed; see the output of Vite above.');
}

/** Compiles changed programs. */
export async function compile(root) {
  if (!(await runProgram(root, 'typescript/bin/tsc', '-b', 'tsconfig.build.json')))
    throw new SetupError('The build failed; see the output of the compiler above.');
}

function runProgram(root, program, ...args) {
  return runCommand(process.execPath, [join(root, 'node_modules', program), ...args], { cwd: root });
}

function modifiedMs(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
