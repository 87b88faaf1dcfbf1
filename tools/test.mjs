// `npm test`: sets up everything that is missing and runs every test. Arguments go to vitest. The last line counts.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { findOrInstallChromium } from './start/chromium-install.mjs';
import { findOrInstallRedisProgram } from './start/redis-install.mjs';
import { SetupError } from './start/say.mjs';
import { announce, countTests, runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

async function main() {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
  try {
    await installDependencies(root);
    const env = { ...process.env, PATH: await pathWithRedis(scratch), CHROMIUM: await chromium() };
    await build(root);
    const reportFile = join(scratch, 'report.json');
    const exitCode = await runVitest({
      root,
      // Not the benches, which take minutes and assert nothing, and not compose, which needs Docker: both have commands.
      projects: ['unit', 'integration', 'k8s', 'e2e'],
      extraArguments: process.argv.slice(2),
      reportFile,
      env,
    });
    return countTests(reportFile, exitCode);
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    return { passed: 0, failed: 1 };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A PATH on which the tests find a `redis-server`, whatever it is called on this machine. */
async function pathWithRedis(scratch) {
  const program = await findOrInstallRedisProgram();
  if (!program) throw new SetupError('The tests need a redis-server on PATH; install Redis and run them again.');
  if (program.endsWith('redis-server')) return process.env.PATH;
  const directory = join(scratch, 'bin');
  mkdirSync(directory);
  symlinkSync(program, join(directory, 'redis-server'));
  return `${directory}${delimiter}${process.env.PATH}`;
}

async function chromium() {
  const program = await findOrInstallChromium();
  if (!program) throw new SetupError('The tests need Chromium; install it, or say with CHROMIUM where it is.');
  return program;
}

announce(await main());
