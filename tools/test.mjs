// `npm test`: installs and builds what is missing, then runs the tests that take minutes. Arguments go to vitest. The
// last line has the counts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, installDependencies } from './start/dependencies.mjs';
import { provideTestPrograms } from './test/programs.mjs';
import { announce, countOf } from './test/counts.mjs';
import { runVitest } from './test/vitest.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const scratch = mkdtempSync(join(tmpdir(), 'darkroom-test-'));

announce(
  await countOf(async () => {
    const env = await provideTestPrograms({ scratch });
    await installDependencies(root);
    await build(root);
    // Slow tests and tests with more requirements run in `npm run test:all`.
    const projects = ['unit', 'integration', 'e2e'];
    return runVitest({ root, projects, extraArguments: process.argv.slice(2), env });
  }),
);
rmSync(scratch, { recursive: true, force: true });
