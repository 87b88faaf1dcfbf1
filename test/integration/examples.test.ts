/** Type-checks every `@example` of the packages whose interfaces others call or implement. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The names that the examples of a package import from it. */
const imports = {
  client: 'ClientError, createClient, drawIdempotencyKey, isEnded, readMetadata, type SystemStatus, textAfter',
  kinds: 'createKinds, imageKind, type Kind, parsePromptWeights, requestFields, resolveBody, text, textField, tileGrid',
  executor:
    'type CreateImageExecutor, type CreateJudge, type CreateTextExecutor, type EngineKind, EngineKinds, type Executor, ModuleExecutor',
};

/** Values that examples use without creating them. */
const globals = `
import type { Client } from '@darkroom/client';
import type { Pipeline, RowRequest } from '@darkroom/core';
import type { ExecutorListener } from '@darkroom/executor';
import type { z as zod } from 'zod';
declare global {
  const z: typeof zod;
  const client: Client;
  const id: string;
  const file: Blob;
  const request: RowRequest;
  const pipeline: Pipeline;
  const onEvents: ExecutorListener;
}`;

/** Writes each example of a package to a file of its own. Returns the names of the files. */
async function writeExamples(directory: string, [name, names]: [string, string]): Promise<string[]> {
  const source = path.join(root, 'libs', name, 'src');
  const written: string[] = [];
  for (const file of (await readdir(source, { recursive: true })).filter((each) => each.endsWith('.ts'))) {
    const text = await readFile(path.join(source, file), 'utf8');
    for (const [, example] of text.matchAll(/@example\n(.*?)(?=^\s*\* @|\*\/)/gms)) {
      const code = `import { ${names} } from '@darkroom/${name}';\n${example!.replaceAll(/^ *\* ?/gm, '')}`;
      written.push(`${name}-${path.basename(file, '.ts')}-${written.length}.ts`);
      await writeFile(path.join(directory, written.at(-1)!), code);
    }
  }
  return written;
}

it('every @example of libs/client, libs/kinds and libs/executor compiles', async () => {
  // Below `node_modules`, which git ignores, and from where the packages resolve.
  const directory = await mkdtemp(path.join(root, 'node_modules/.examples-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const files = ['globals.ts'];
  for (const entry of Object.entries(imports)) files.push(...(await writeExamples(directory, entry)));
  expect(files.length).toBeGreaterThan(20);
  await writeFile(path.join(directory, 'globals.ts'), globals);
  const config = { extends: path.join(root, 'tsconfig.json'), include: [], files };
  await writeFile(path.join(directory, 'tsconfig.json'), JSON.stringify(config));
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const errors = await new Promise<string>((resolve) => {
    execFile(process.execPath, [compiler, '-p', directory], (error, stdout) =>
      resolve(`${error?.message ?? ''}${stdout}`),
    );
  });
  expect(errors).toBe('');
});
