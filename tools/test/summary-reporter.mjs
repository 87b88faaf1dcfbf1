// Reports the counts of a run to tools/test/vitest.mjs: passed, failed, and skipped tests with a reason.
import { writeFileSync } from 'node:fs';

export default class SummaryReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const summary = { passed: 0, failed: unhandledErrors.length, skipped: [] };
    for (const module of modules) {
      let failedHere = 0;
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        if (state === 'passed') summary.passed++;
        else if (state === 'failed') failedHere++;
        else if (note !== undefined) summary.skipped.push(`${test.fullName}: ${note}`);
      }
      // A file that fails to load, or whose setup fails, counts as one failed test.
      summary.failed += failedHere === 0 && module.state() === 'failed' ? 1 : failedHere;
    }
    writeFileSync(process.env.DARKROOM_TEST_SUMMARY, JSON.stringify(summary));
  }
}
