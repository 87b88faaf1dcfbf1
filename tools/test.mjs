// `npm test`: sets up everything that is missing and runs every test. Arguments go to vitest. The last line counts.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { findOrInstallChromium } from './start/chromium-install.mjs';
import { findOrInstallRedisProgram } from './start/redis-install.mjs';
import { SetupError } from './start/say.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

async function main() {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
  try {
    await installDependencies(root);
    const env = { ...process.env, PATH: await pathWithRedis(scratch), CHROMIUM: await chromium() };
    await build(root);
    const reportFile = join(scratch, 'report.json');
    const exitCode = await runVitest(process.argv.slice(2), reportFile, env);
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

function runVitest(extraArguments, reportFile, env) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  // The benches take minutes and assert nothing.
  const projects = ['--project=!bench'];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(process.execPath, [vitest, 'run', ...projects, ...reporters, ...extraArguments], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  // Vitest gets the Ctrl-C as well and ends by itself; we wait to clean up after it.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** A file that could not even be loaded, or an error outside of any test, counts as one failed test. */
function countTests(reportFile, exitCode) {
  let report;
  try {
    report = JSON.parse(readFileSync(reportFile, 'utf8'));
  } catch {
    return { passed: 0, failed: 1 };
  }
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  const failed = report.numFailedTests + brokenFiles.length;
  return { passed: report.numPassedTests, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}

const { passed, failed } = await main();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
