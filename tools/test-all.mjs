// `npm run test:all`: every test there is; what CI runs. The last line counts.
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
  // Tests of whole systems mostly wait, and so do containers: beside each other they take little more than one of them.
  const [onMachine, apart] = await Promise.all([testOnMachine(env), testApart(env)]);
  for (const { output } of apart) process.stdout.write(output);
  if (!isDockerHere)
    console.log('npm run test:bare and npm run test:compose are not run: there is no Docker engine here');
  if (!existsSync(join(root, 'tools/export/.venv/bin/python')))
    console.log(
      'tools/export is not set up: test/systems/smollm2.test.ts tries SmolLM2 only where it was exported before',
    );
  const sumOf = (what) => [onMachine, ...apart].reduce((sum, counts) => sum + counts[what], 0);
  return { passed: sumOf('passed'), failed: sumOf('failed') };
}

/** What `npm test` runs is run in a bare container, where there is one. */
function testOnMachine(env) {
  const projects = isDockerHere ? ['k8s', 'systems'] : ['unit', 'integration', 'k8s', 'e2e', 'systems'];
  return runVitest({ root, projects, env });
}

/** What these write comes when all is over: lines of both at once could not be read. */
async function testApart(env) {
  const results = [];
  for (const command of isDockerHere ? ['test:bare', 'test:compose'] : [])
    results.push(await countOfCommand('npm', ['run', command], { cwd: root, env }));
  // Last, so that its table is the last that is read here.
  const chaos = ['run', 'chaos', '--', '--seconds', '300', '--seed', '14'];
  const { code, output } = await runAndRead('npm', chaos, { cwd: root, env });
  results.push({ passed: Number(code === 0), failed: Number(code !== 0), output });
  return results;
}

/** An engine that can really run a container. */
async function hasDocker() {
  const commands = [
    ['compose', 'version'],
    ['run', '--rm', bareImage, 'node', '--version'],
  ];
  for (const command of commands) if (!(await runCommand('docker', command, { quiet: true }))) return false;
  return true;
}
