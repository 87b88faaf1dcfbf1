// `npm run test:all`: all tests, as in CI. The last line has the counts.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { runCommand } from './start/run-command.mjs';
import { bareImage } from './test/bare-container.mjs';
import { announce, countOf, countOfCommand } from './test/counts.mjs';
import { provideTestPrograms } from './test/programs.mjs';
import { runAndRead } from './test/run-and-read.mjs';
import { runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
const isDockerHere = await hasDocker();

announce(await countOf(testAll));
rmSync(scratch, { recursive: true, force: true });

async function testAll() {
  const env = await provideTestPrograms({ scratch, isForAll: true });
  await installDependencies(root);
  await build(root);
  // System tests and containers mostly wait, so run both concurrently.
  const [onMachine, apart] = await Promise.all([testOnMachine(env), testApart(env)]);
  for (const { output } of apart) process.stdout.write(output);
  if (!isDockerHere) console.log('skipped npm run test:bare and npm run test:compose: no Docker engine');
  if (!existsSync(join(root, 'tools/export/.venv/bin/python')))
    console.log('tools/export is not set up: test/systems/smollm2.test.ts runs SmolLM2 only if it was exported before');
  const sumOf = (what) => [onMachine, ...apart].reduce((sum, counts) => sum + counts[what], 0);
  return { passed: sumOf('passed'), failed: sumOf('failed') };
}

/** Skips the projects of `npm test` if a container runs them. */
function testOnMachine(env) {
  const projects = isDockerHere ? ['k8s', 'systems'] : ['unit', 'integration', 'k8s', 'e2e', 'systems'];
  return runVitest({ root, projects, env });
}

/** Prints the output of these commands at the end: interleaved lines would be unreadable. */
async function testApart(env) {
  const results = [];
  for (const command of isDockerHere ? ['test:bare', 'test:compose'] : [])
    results.push(await countOfCommand('npm', ['run', command], { cwd: root, env }));
  // Last, so that its table is at the end of the output.
  const chaos = ['run', 'chaos', '--', '--seconds', '300', '--seed', '14'];
  const { code, output } = await runAndRead('npm', chaos, { cwd: root, env });
  results.push({ passed: Number(code === 0), failed: Number(code !== 0), output });
  return results;
}

/** Returns whether Docker can run a container. */
async function hasDocker() {
  const commands = [
    ['compose', 'version'],
    ['run', '--rm', bareImage, 'node', '--version'],
  ];
  for (const command of commands) if (!(await runCommand('docker', command, { quiet: true }))) return false;
  return true;
}
