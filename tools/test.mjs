// `npm test`: sets up everything that is missing and runs the tests that say within minutes whether this checkout works.
// Arguments go to vitest. The last line counts.
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
    // What takes long, and what needs more than that, is in `npm run test:all`.
    const projects = ['unit', 'integration', 'e2e'];
    return runVitest({ root, projects, extraArguments: process.argv.slice(2), env });
  }),
);
rmSync(scratch, { recursive: true, force: true });
