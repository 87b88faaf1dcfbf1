import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from './run-command.mjs';
import { SetupError, say } from './say.mjs';

/** Installs the packages when there are none, or when package-lock.json is newer than what is installed. */
export async function installDependencies(root) {
  const wanted = modifiedMs(join(root, 'package-lock.json'));
  const installed = modifiedMs(join(root, 'node_modules/.package-lock.json'));
  if (installed >= wanted && installed > 0) return;
  say(
    installed === 0 ? 'installing dependencies (npm ci)' : 'package-lock.json has changed: installing again (npm ci)',
  );
  // TypeScript is a development dependency, and NODE_ENV=production would leave it out.
  if (!(await runCommand('npm', ['ci', '--include=dev'], { cwd: root })))
    throw new SetupError('npm ci failed; what it wrote above says why.');
}

/** As `npm run build`. */
export async function build(root) {
  await compile(root);
  await buildPage(root);
}

/** What is there when a package has been built to its end, if not what the compiler leaves. */
const builtOf = { page: 'dist/client.html' };

/** The same, where any source has changed since this was last done: to be asked, the compiler and Vite take most of a second. */
export async function buildWhatChanged(root) {
  const stamp = join(root, '.darkroom/built');
  const began = new Date();
  // A package that is no more may have left what was built of it.
  const packages = ['apps', 'libs']
    .flatMap((kind) => list(join(root, kind)))
    .filter(({ path }) => existsSync(join(path, 'package.json')));
  const isBuilt = packages.every(({ name, path }) => existsSync(join(path, builtOf[name] ?? 'tsconfig.tsbuildinfo')));
  if (isBuilt && modifiedMs(stamp) > newestMs(root, packages)) return;
  await build(root);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, '');
  // What changes while it is built is built the next time.
  utimesSync(stamp, began, began);
}

/** When anything was last changed that something is built of. */
function newestMs(root, packages) {
  const files = [root, ...packages.map(({ path }) => path)].flatMap((path) => list(path));
  const own = files
    .filter((file) => file.isFile() && !file.name.endsWith('.tsbuildinfo'))
    .map(({ path }) => modifiedMs(path));
  const installed = modifiedMs(join(root, 'node_modules/.package-lock.json'));
  return Math.max(installed, ...own, ...packages.map(({ path }) => newestBelowMs(join(path, 'src'))));
}

/** A directory changes when a file in it is removed. */
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
    throw new SetupError('The page could not be built; what Vite wrote above says why.');
}

/** Compiles what has changed of the programs. */
export async function compile(root) {
  if (!(await runProgram(root, 'typescript/bin/tsc', '-b', 'tsconfig.build.json')))
    throw new SetupError('The build failed; what the compiler wrote above says why.');
}

function runProgram(root, program, ...args) {
  return runCommand(process.execPath, [join(root, 'node_modules', program), ...args], { cwd: root });
}

function modifiedMs(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
