// `npm run test:compose`: builds the container images and runs the tests of docker-compose.yml. Needs Docker with
// compose v2.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { findOrInstallRedisProgram } from './start/redis-install.mjs';
import { runCommand } from './start/run-command.mjs';
import { SetupError } from './start/say.mjs';
import { announce, countOf } from './test/counts.mjs';
import { runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

announce(
  await countOf(async () => {
    if (!(await runCommand('docker', ['compose', 'build'], { cwd: root })))
      throw new SetupError('docker compose build failed; see its output above.');
    await installDependencies(root);
    // The tests compare its output images with those of a system on this machine, which needs a Redis.
    await findOrInstallRedisProgram();
    await build(root);
    return runVitest({ root, projects: ['compose'], extraArguments: process.argv.slice(2) });
  }),
);
