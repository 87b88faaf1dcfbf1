// Runs vitest and returns its counts.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const reporter = join(import.meta.dirname, 'summary-reporter.mjs');

/** Runs the named projects. Returns the counts and prints the tests that were skipped with a reason. */
export async function runVitest({ root, projects, extraArguments = [], env = process.env }) {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));
  const summaryFile = join(scratch, 'summary.json');
  const selected = projects.map((name) => `--project=${name}`);
  const args = ['run', ...selected, '--reporter=default', `--reporter=${reporter}`, ...extraArguments];
  try {
    const exitCode = await run(root, args, { ...env, DARKROOM_TEST_SUMMARY: summaryFile });
    return readSummary(summaryFile, exitCode);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const stay = () => {};

function run(root, args, env) {
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  // Vitest gets the Ctrl-C too and ends by itself; wait for it before the cleanup.
  const pass = () => child.kill('SIGTERM');
  process.on('SIGINT', stay).on('SIGTERM', pass);
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  }).finally(() => process.off('SIGINT', stay).off('SIGTERM', pass));
}

function readSummary(file, exitCode) {
  let summary;
  try {
    summary = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1 };
  }
  const { passed, failed, skipped } = summary;
  for (const test of skipped) console.log(`skipped: ${test}`);
  return { passed, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}
