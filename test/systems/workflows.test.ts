/** The workflows of .github, which run only on GitHub: checked by actionlint and against the Dockerfile. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';

const root = new URL('../../', import.meta.url).pathname;
const folder = join(root, '.github/workflows');
const files = readdirSync(folder).map((name) => join(folder, name));
const hasGo = spawnSync('go', ['version']).error === undefined;
const timeoutMs = 300_000;

/** Returns what actionlint reports about workflow files, empty if nothing. Go downloads and builds it once. */
function lint(...workflows: readonly string[]): Promise<string> {
  const words = ['run', 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12', '-no-color', ...workflows];
  return new Promise((resolve) => {
    execFile('go', words, { cwd: root }, (error, stdout, stderr) => resolve(error === null ? '' : stdout + stderr));
  });
}

it.skipIf(!hasGo)('actionlint finds nothing wrong in the workflows', { timeout: timeoutMs }, async () => {
  expect(await lint(...files)).toBe('');
});

it.skipIf(!hasGo)('actionlint reports an output that no step has', { timeout: timeoutMs }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-workflows-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const wrong = join(directory, 'release.yml');
  const text = readFileSync(join(folder, 'release.yml'), 'utf8');
  writeFileSync(wrong, text.replace('steps.read.outputs', 'steps.raed.outputs'));
  expect(await lint(wrong)).toContain('"raed" is not defined');
});

it('pins every action to a commit, with its version as a comment', () => {
  for (const file of files) {
    const used = readFileSync(file, 'utf8').match(/uses: .*/g)!;
    for (const line of used) expect(line).toMatch(/^uses: (?:\.\/.*|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/);
  }
});

it('releases every final target of the Dockerfile', () => {
  const { env, jobs } = parse(readFileSync(join(folder, 'release.yml'), 'utf8')) as {
    env: { TARGETS: string };
    jobs: { images: { strategy: { matrix: { include: { 'more-targets': string }[] } } } };
  };
  const more = jobs.images.strategy.matrix.include.map((entry) => entry['more-targets']);
  const released = [env.TARGETS, ...more].join(' ').trim().split(/\s+/);
  // Final targets have a command; the others are steps on the way.
  const stages = readFileSync(join(root, 'Dockerfile'), 'utf8').split(/^FROM /m);
  const final = stages.filter((stage) => /^(?:CMD|ENTRYPOINT) .*js"\]$/m.test(stage));
  const targets = final.map((stage) => /^\S+ AS (\S+)/.exec(stage)![1]!);
  expect(released.toSorted()).toEqual(targets.toSorted());
});
