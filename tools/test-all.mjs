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
import { runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
const isDockerHere = await hasDocker();

// Tests of whole systems mostly wait, and so do containers: beside each other they take little more than one of them.
const [onMachine, inContainers] = await Promise.all([countOf(testOnMachine), isDockerHere ? testInContainers() : []]);
const counts = [onMachine];
for (const { output, ...count } of inContainers) {
  process.stdout.write(output);
  counts.push(count);
}
if (!isDockerHere)
  console.log('npm run test:bare and npm run test:compose are not run: there is no Docker engine here');
if (!existsSync(join(root, 'tools/export/.venv/bin/python')))
  console.log(
    'tools/export is not set up: test/systems/smollm2.test.ts tries SmolLM2 only where it was exported before',
  );
rmSync(scratch, { recursive: true, force: true });
announce({
  passed: counts.reduce((sum, { passed }) => sum + passed, 0),
  failed: counts.reduce((sum, { failed }) => sum + failed, 0),
});

/** What `npm test` runs is run in a bare container, where there is one; twice would be too long, but for what any Node may break. */
async function testOnMachine() {
  const env = await provideTestPrograms({ scratch, isForAll: true });
  await installDependencies(root);
  await build(root);
  const projects = isDockerHere ? ['unit', 'k8s', 'systems'] : ['unit', 'integration', 'k8s', 'e2e', 'systems'];
  const { passed, failed } = await runVitest({ root, projects, env });
  // Last, so that its table is the last that is read here.
  const holds = await runCommand('npm', ['run', 'chaos', '--', '--seconds', '300', '--seed', '14'], { cwd: root, env });
  return { passed: passed + Number(holds), failed: failed + Number(!holds) };
}

/** What these write comes when all is over: lines of both at once could not be read. */
async function testInContainers() {
  const results = [];
  for (const command of ['test:bare', 'test:compose'])
    results.push(await countOfCommand('npm', ['run', command], { cwd: root }));
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
