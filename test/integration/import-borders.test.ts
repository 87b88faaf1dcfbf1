/** The borders of tools/import-borders.mjs, and the other rules of .oxlintrc.json that keep packages apart. */
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

/** What lint says, as `file: message`, of a repository with these files and our rules. */
async function lint(files: Readonly<Record<string, string>>): Promise<string[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'borders-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of ['.oxlintrc.json', 'tools/import-borders.mjs'])
    await cp(path.join(root, name), path.join(directory, name));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(directory, name)), { recursive: true });
    await writeFile(path.join(directory, name), content);
  }
  const oxlint = path.join(root, 'node_modules/oxlint/bin/oxlint');
  const output = await new Promise<string>((resolve) => {
    // Its exit status says only that there is something to read.
    execFile(process.execPath, [oxlint, '-f', 'json'], { cwd: directory }, (_error, stdout) => resolve(stdout));
  });
  const { diagnostics } = JSON.parse(output) as { diagnostics: Diagnostic[] };
  return diagnostics.map(({ filename, message }) => `${filename}: ${message}`).toSorted();
}

it('refuses every kind of import across a border', async () => {
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
      'libs/core/src/a.ts: libs/core may import nothing of ours, and this is config (tools/import-borders.mjs).',
      'libs/client/src/a.ts: libs/client may import nothing of ours, and this is core (tools/import-borders.mjs).',
      'libs/client/src/b.ts: libs/client runs in browsers, and imports nothing of Node.',
      "libs/client/src/c.ts: Unexpected use of 'Buffer'.",
      'libs/kinds/src/a.ts: libs/kinds may import core of ours, and this is store (tools/import-borders.mjs).',
      'libs/service/src/a.ts: Only libs/store imports ioredis.',
      'libs/batching/src/a.ts: Only libs/store imports bullmq.',
      'libs/executor/src/a.ts: Only libs/runtime imports onnxruntime-node.',
      'libs/runtime/src/a.ts: Only libs/imaging imports sharp.',
      'apps/api/src/a.ts: Only libs/service imports prom-client.',
      'apps/api/src/b.ts: apps/api reaches into apps/worker by its path; import a package by its name.',
      'apps/api/src/c.ts: apps/api reaches into libs/store by its path; import a package by its name.',
      'apps/janitor/src/a.ts: apps/janitor may import core, config, service, store, batching of ours, and this is api (tools/import-borders.mjs).',
      'apps/page/src/a.ts: apps/page may import client of ours, and this is store (tools/import-borders.mjs).',
      'apps/new/src/a.ts: apps/new is not in the table of tools/import-borders.mjs.',
    ].toSorted(),
  );
});

it('lets pass what the table allows, and anything to tests', async () => {
  const found = await lint({
    'libs/store/src/a.ts': `export { Redis } from 'ioredis';\nexport { a } from '@darkroom/core';\nexport { b } from './b.ts';`,
    'libs/store/src/b.ts': `export { readFile } from 'node:fs';\nexport const b = 1;`,
    'libs/executor/src/a.ts': `export { a } from '@darkroom/diffusion/encode';`,
    'libs/core/src/a.test.ts': `export { Redis } from 'ioredis';\nexport { a } from '@darkroom/testing';`,
    'apps/worker/src/testing/a.ts': `export { a } from '../../../api/src/a.ts';`,
  });
  expect(found).toEqual([]);
});

it('refuses a circle of imports, of types too', async () => {
  const found = await lint({
    'libs/core/src/a.ts': `import type { B } from './b.ts';\nexport interface A { b?: B }`,
    'libs/core/src/b.ts': `import type { A } from './a.ts';\nexport interface B { a?: A }`,
    'libs/core/src/c.ts': `export type { D } from './d.ts';\nexport type C = 1;`,
    'libs/core/src/d.ts': `import type { C } from './c.ts';\nexport interface D { c?: C }`,
  });
  const circle = 'Dependency cycle detected';
  expect(found).toEqual(['a', 'b', 'c', 'd'].map((name) => `libs/core/src/${name}.ts: ${circle}`));
});
