import { statSync } from 'node:fs';
import { join } from 'node:path';
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

/** Takes less than a second, whatever has changed. */
export async function buildPage(root) {
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
