/** Import rules: tools/import-borders.mjs, tools/check-folders.mjs and the related rules of .oxlintrc.json. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

interface Diagnostic {
  filename: string;
  message: string;
}

type Files = Readonly<Record<string, string>>;

/** Creates a repository with these files and our rules. */
async function createRepository(files: Files): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'borders-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of ['.oxlintrc.json', 'tools/import-borders.mjs'])
    await cp(path.join(root, name), path.join(directory, name));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(directory, name)), { recursive: true });
    await writeFile(path.join(directory, name), content);
  }
  return directory;
}

/** Lints a repository with these files. Returns each diagnostic as `file: message`. */
async function lint(files: Files): Promise<string[]> {
  const directory = await createRepository(files);
  const oxlint = path.join(root, 'node_modules/oxlint/bin/oxlint');
  const output = await new Promise<string>((resolve) => {
    // Ignore the exit status: oxlint exits with 1 when it has diagnostics.
    execFile(process.execPath, [oxlint, '-f', 'json'], { cwd: directory }, (_error, stdout) => resolve(stdout));
  });
  const { diagnostics } = JSON.parse(output) as { diagnostics: Diagnostic[] };
  return diagnostics.map(({ filename, message }) => `${filename}: ${message}`).toSorted();
}

it('refuses every kind of import that the table does not allow', async () => {
  const found = await lint({
    'libs/core/src/a.ts': `export * from '@darkroom/config';`,
    'libs/client/src/a.ts': `import type { Model } from '@darkroom/core';\nexport type A = Model;`,
    'libs/client/src/b.ts': `export { readFile } from 'node:fs';`,
    'libs/client/src/c.ts': `export const b = Buffer.from('b');`,
    'libs/kinds/src/a.ts': `export type { Store } from '@darkroom/store';`,
    'libs/service/src/a.ts': `export { Redis } from 'ioredis';`,
    'libs/batching/src/a.ts': `export const load = () => import('bullmq/dist/esm');`,
    'libs/executor/src/a.ts': `export { InferenceSession } from 'onnxruntime-node';`,
    'libs/runtime/src/a.ts': `export { default as sharp } from 'sharp';`,
    'apps/api/src/a.ts': `export { Counter } from 'prom-client';`,
    'apps/api/src/b.ts': `export { pickGpu } from '../../worker/src/pick-gpu.ts';`,
    'apps/api/src/c.ts': `export { key } from '../../../libs/store/src/keys.ts';`,
    'apps/janitor/src/a.ts': `export { a } from '@darkroom/api';`,
    'apps/page/src/a.ts': `export { a } from '@darkroom/store';`,
    'apps/new/src/a.ts': `export { a } from '@darkroom/core';`,
  });
  expect(found).toEqual(
    [
      'libs/core/src/a.ts: libs/core must not import config, allowed: none (tools/import-borders.mjs).',
      'libs/client/src/a.ts: libs/client must not import core, allowed: none (tools/import-borders.mjs).',
      'libs/client/src/b.ts: libs/client runs in browsers and must not import Node modules.',
      "libs/client/src/c.ts: Unexpected use of 'Buffer'.",
      'libs/kinds/src/a.ts: libs/kinds must not import store, allowed: core (tools/import-borders.mjs).',
      'libs/service/src/a.ts: Only libs/store imports ioredis.',
      'libs/batching/src/a.ts: Only libs/store imports bullmq.',
      'libs/executor/src/a.ts: Only libs/runtime imports onnxruntime-node.',
      'libs/runtime/src/a.ts: Only libs/imaging imports sharp.',
      'apps/api/src/a.ts: Only libs/service imports prom-client.',
      'apps/api/src/b.ts: apps/api imports apps/worker by a relative path; import it by its package name.',
      'apps/api/src/c.ts: apps/api imports libs/store by a relative path; import it by its package name.',
      'apps/janitor/src/a.ts: apps/janitor must not import api, allowed: core, config, service, store, batching (tools/import-borders.mjs).',
      'apps/page/src/a.ts: apps/page must not import store, allowed: client (tools/import-borders.mjs).',
      'apps/new/src/a.ts: apps/new is not in the table of tools/import-borders.mjs.',
    ].toSorted(),
  );
});

it('accepts imports that the table allows, and every import in tests', async () => {
  const found = await lint({
    'libs/store/src/a.ts': `export { Redis } from 'ioredis';\nexport { a } from '@darkroom/core';\nexport { b } from './b.ts';`,
    'libs/store/src/b.ts': `export { readFile } from 'node:fs';\nexport const b = 1;`,
    'libs/executor/src/a.ts': `export { a } from '@darkroom/diffusion/encode';`,
    'libs/core/src/a.test.ts': `export { Redis } from 'ioredis';\nexport { a } from '@darkroom/testing';`,
    'apps/worker/src/testing/a.ts': `export { a } from '../../../api/src/a.ts';`,
  });
  expect(found).toEqual([]);
});

it('refuses import cycles, of types too', async () => {
  const found = await lint({
    'libs/core/src/a.ts': `import type { B } from './b.ts';\nexport interface A { b?: B }`,
    'libs/core/src/b.ts': `import type { A } from './a.ts';\nexport interface B { a?: A }`,
    'libs/core/src/c.ts': `export type { D } from './d.ts';\nexport type C = 1;`,
    'libs/core/src/d.ts': `import type { C } from './c.ts';\nexport interface D { c?: C }`,
  });
  const circle = 'Dependency cycle detected';
  expect(found).toEqual(['a', 'b', 'c', 'd'].map((name) => `libs/core/src/${name}.ts: ${circle}`));
});

/** Returns the lines that tools/check-folders.mjs prints for a repository with these files. */
async function checkFolders(files: Files): Promise<string[]> {
  const cwd = await createRepository(files);
  const script = path.join(root, 'tools/check-folders.mjs');
  return new Promise((resolve) => {
    execFile(process.execPath, [script], { cwd }, (error, _stdout, stderr) => {
      expect(error === null).toBe(stderr === '');
      resolve(stderr.split('\n').filter((line) => line !== ''));
    });
  });
}

it('refuses folders of a package that import each other, directly or through others', async () => {
  const found = await checkFolders({
    'libs/core/src/a/a.ts': `import type { B } from '../b/b.ts';\nexport interface A { b?: B }`,
    'libs/core/src/b/b.ts': `export { c } from '../c/c.ts';\nexport type B = 1;`,
    'libs/core/src/c/c.ts': `export const c = () => import('../a/other.ts');`,
    'libs/core/src/a/other.ts': `export const other = 1;`,
    'apps/api/src/main.ts': `import './http/http.ts';`,
    'apps/api/src/shared.ts': `export const shared = 1;`,
    'apps/api/src/http/http.ts': `export { shared } from '../shared.ts';`,
  });
  const api = [
    'apps/api/src/main.ts imports apps/api/src/http/http.ts',
    'apps/api/src/http/http.ts imports apps/api/src/shared.ts',
  ];
  const core = [
    'libs/core/src/a/a.ts imports libs/core/src/b/b.ts',
    'libs/core/src/b/b.ts imports libs/core/src/c/c.ts',
    'libs/core/src/c/c.ts imports libs/core/src/a/other.ts',
  ];
  for (const edge of [...api, ...core]) expect(found).toContain(`  ${edge}`);
  expect(found.filter((line) => !line.startsWith(' ')).toSorted()).toEqual(
    ['apps/api/src', 'apps/api/src/http', 'libs/core/src/a', 'libs/core/src/b', 'libs/core/src/c'].map(
      (folder) => `${folder} imports itself through other folders:`,
    ),
  );
});

it('accepts folders in one direction, lists of exports and tests', async () => {
  const found = await checkFolders({
    'libs/core/src/index.ts': `export { a } from './a/a.ts';`,
    'libs/core/src/base.ts': `export const base = 1;`,
    'libs/core/src/a/a.ts': `export { base as a } from '../base.ts';`,
    'libs/core/src/b/b.ts': `export { a } from '../a/a.ts';`,
    'libs/core/src/a/a.test.ts': `export { a } from '../b/b.ts';`,
    'libs/core/src/testing/a.ts': `export { a } from '../b/b.ts';`,
    'libs/core/src/a/testing/b.ts': `export { a } from '../../b/b.ts';`,
  });
  expect(found).toEqual([]);
});
