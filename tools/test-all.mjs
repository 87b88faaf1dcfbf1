// `npm run test:all`: every test there is; what CI runs. The last line counts.
import { mkdtempSync, rmSync } from 'node:fs';
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

const counts = [
  await countOf(async () => {
    const env = await provideTestPrograms({ scratch, isForAll: true });
    await installDependencies(root);
    await build(root);
    // What `npm test` runs is run in a bare container; twice would be too long.
    const projects = isDockerHere ? ['k8s', 'systems'] : ['unit', 'integration', 'k8s', 'e2e', 'systems'];
    return runVitest({ root, projects, env });
  }),
];
if (isDockerHere) {
  counts.push(await countOfCommand('npm', ['run', 'test:bare'], { cwd: root }));
  counts.push(await countOfCommand('npm', ['run', 'test:compose'], { cwd: root }));
} else {
  console.log('npm run test:bare and npm run test:compose are not run: there is no Docker engine here');
}
rmSync(scratch, { recursive: true, force: true });
announce({
  passed: counts.reduce((sum, { passed }) => sum + passed, 0),
  failed: counts.reduce((sum, { failed }) => sum + failed, 0),
});

/** An engine that can really run a container. */
async function hasDocker() {
  const commands = [
    ['compose', 'version'],
    ['run', '--rm', bareImage, 'node', '--version'],
  ];
  for (const command of commands) if (!(await runCommand('docker', command, { quiet: true }))) return false;
  return true;
}
