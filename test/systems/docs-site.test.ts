/** The site that `npm run docs` builds from docs/. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;

/** Builds a copy of docs/, with more text on one of its pages, beside links to all other files of the repository. */
async function buildSite({ addition = '' } = {}): Promise<{ site: string; output: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-docs-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of await readdir(root))
    if (!['docs', 'dist', '.darkroom'].includes(name)) await symlink(join(root, name), join(directory, name));
  await cp(join(root, 'docs'), join(directory, 'docs'), { recursive: true });
  await appendFile(join(directory, 'docs/bytes.md'), addition);
  const { stdout, stderr } = await promisify(execFile)('npm', ['run', 'docs'], { cwd: directory }).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return { site: join(directory, 'dist/docs'), output: stdout + stderr };
}

it('npm run docs builds a site of all pages with a search index and llms.txt', async () => {
  const { site } = await buildSite();
  const built = new Set(await readdir(site, { recursive: true }));
  const pages = (await readdir(join(root, 'docs'), { recursive: true })).filter((name) => name.endsWith('.md'));
  expect(pages.filter((name) => !built.has(name))).toEqual([]);
  const html = pages.map((name) => name.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html'));
  expect(html.filter((name) => !built.has(name))).toEqual([]);
  expect([...built].filter((name) => /localSearchIndex/.test(name))).not.toEqual([]);
  expect(await readFile(join(site, 'llms.txt'), 'utf8')).toBe(await readFile(join(root, 'docs/README.md'), 'utf8'));
});

it.each([
  ['a page', '[x](absent-page.md)', 'absent-page'],
  ['a heading', '[x](redis.md#absent-heading)', 'redis.html#absent-heading'],
  ['a file of the repository', '[x](../models/absent-model)', '../models/absent-model'],
  ['an image', '![x](images/absent.png)', 'images/absent.png'],
])('a broken link to %s fails the build and is named', async (_kind, link, named) => {
  const { site, output } = await buildSite({ addition: `\n${link}\n` });
  expect(output).toContain('build error');
  expect(output).toContain('bytes');
  expect(output).toContain(named);
  await expect(readFile(join(site, 'llms.txt'))).rejects.toThrow('ENOENT');
});

it('docs/README.md lists every page once', async () => {
  const pages = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md') && name !== 'README.md');
  const index = await readFile(join(root, 'docs/README.md'), 'utf8');
  const listed = [...index.matchAll(/^- \[[^\]]+\]\((?<page>[\w-]+\.md)\): /gm)].map(({ groups }) => groups!['page']!);
  expect(listed.toSorted()).toEqual(pages.toSorted());
});

it.each(['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'bench/README.md', 'tools/export/README.md'])(
  '%s links to existing files',
  async (name) => {
    const text = await readFile(join(root, name), 'utf8');
    const links = [...text.matchAll(/\]\((?<path>[^):#]+)(?:#[^)]*)?\)/g)].map(({ groups }) => groups!['path']!);
    const missing = links.filter((path) => !existsSync(join(root, dirname(name), path)));
    expect([links.length > 0, missing]).toEqual([true, []]);
  },
);
