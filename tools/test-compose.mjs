// `npm run test:compose`: builds the images and runs docker-compose.yml through its tests. Needs Docker with compose v2.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { findOrInstallRedisProgram } from './start/redis-install.mjs';
import { runCommand } from './start/run-command.mjs';
import { SetupError } from './start/say.mjs';
import { announce, countTests, runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

async function main() {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
  try {
    if (!(await runCommand('docker', ['compose', 'build'], { cwd: root })))
      throw new SetupError('The images could not be built; what Docker wrote above says why.');
    await installDependencies(root);
    // Pictures are compared with those of a system on this machine, which needs a Redis.
    await findOrInstallRedisProgram();
    await build(root);
    const reportFile = join(scratch, 'report.json');
    const extraArguments = process.argv.slice(2);
    const exitCode = await runVitest({ root, projects: ['compose'], extraArguments, reportFile, env: process.env });
    return countTests(reportFile, exitCode);
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    return { passed: 0, failed: 1 };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

announce(await main());
