// Runs vitest and counts what it ran, for the last line that CI reads.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Runs the projects that `projects` selects; resolves to the exit code. The report goes to `reportFile` as JSON. */
export function runVitest({ root, projects, extraArguments, reportFile, env }) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const selected = projects.map((pattern) => `--project=${pattern}`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(process.execPath, [vitest, 'run', ...selected, ...reporters, ...extraArguments], {
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
export function countTests(reportFile, exitCode) {
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

/** Prints the last line and sets the exit status. No test at all is a failure. */
export function announce({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}
