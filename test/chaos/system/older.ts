/** Builds an older version of this repository in a separate worktree, with the same third-party packages. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('../../../../', import.meta.url).pathname;

/** Checks out and builds a commit; returns its directory, which is removed when this process exits. */
export function buildOlder(commit: string, directory: string): string {
  const git = (...args: string[]): void => void execFileSync('git', ['-C', root, ...args], { stdio: 'ignore' });
  git('worktree', 'add', '--detach', directory, commit);
  process.once('exit', () => git('worktree', 'remove', '--force', directory));
  const packages = join(directory, 'node_modules');
  mkdirSync(join(packages, '@darkroom'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== '@darkroom') symlinkSync(join(root, 'node_modules', name), join(packages, name));
  for (const name of readdirSync(join(directory, 'libs')))
    symlinkSync(join(directory, 'libs', name), join(packages, '@darkroom', name));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  for (const app of ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'])
    execFileSync(process.execPath, [tsc, '-b', join(directory, 'apps', app)], { stdio: 'inherit' });
  return directory;
}
