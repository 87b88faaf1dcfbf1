/**
 * The packed client library installed in an empty project outside of the checkout: types, examples of its documents,
 * bundling.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { build } from 'vite';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
const root = fileURLToPath(new URL('../../', import.meta.url));
const documents = ['docs/client.md', 'libs/client/README.md'];

let project = '';

/** Runs a program in the project. Resolves with its output; rejects with the output if the exit code is not 0. */
function run(program: string, args: readonly string[], cwd = project): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} ${args.join(' ')}\n${stdout}\n${stderr}`, { cause: error }));
    });
  });
}

/** Packs a directory. Returns the tarball's path. */
async function pack(directory: string, ...options: string[]): Promise<string> {
  const output = await run('npm', ['pack', '--json', '--pack-destination', project, ...options], directory);
  const [{ filename }] = JSON.parse(output) as [{ filename: string }];
  return path.join(project, filename);
}

interface Example {
  /** Such as `client-0`: the document and the block's position in it. */
  name: string;
  code: string;
}

/** Returns the JavaScript and TypeScript blocks of the client's documents. */
async function readExamples(): Promise<Example[]> {
  const examples: Example[] = [];
  for (const file of documents) {
    const blocks = (await readFile(path.join(root, file), 'utf8')).matchAll(/^```(?:js|ts)\n(?<code>.*?)^```$/gms);
    for (const [index, { groups }] of [...blocks].entries())
      examples.push({ name: `${path.basename(file, '.md')}-${index}`.toLowerCase(), code: groups!['code']! });
  }
  return examples;
}

/** Returns the compiler's errors in the project's files under the strictest options; empty if there are none. */
async function typeErrors(options: Readonly<Record<string, unknown>>): Promise<string> {
  const compilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    target: 'es2023',
    ...options,
  };
  const config = path.join(project, 'tsconfig.json');
  await writeFile(config, JSON.stringify({ compilerOptions, include: ['*.mts'] }));
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  return run(process.execPath, [compiler, '-p', config]).catch((error: Error) => error.message);
}

const nodeTypes = { lib: ['es2023'], types: ['node'], typeRoots: [path.join(root, 'node_modules/@types')] };
const nodenext = { ...nodeTypes, module: 'nodenext', moduleResolution: 'nodenext' };
const bundler = { ...nodeTypes, module: 'esnext', moduleResolution: 'bundler' };

beforeAll(async () => {
  project = await mkdtemp(path.join(tmpdir(), 'installed-client-'));
  await writeFile(path.join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  // The dependency is packed from this checkout, so the installation needs no registry.
  const tarballs = [
    await pack(path.join(root, 'libs/client')),
    await pack(path.join(root, 'node_modules/eventsource-parser'), '--ignore-scripts'),
  ];
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', ...tarballs]);
  for (const { name, code } of await readExamples()) await writeFile(path.join(project, `${name}.mts`), code);
});

afterAll(() => rm(project, { recursive: true, force: true }));

it('packs built modules with types and a README, without sources or tests', async () => {
  const installed = path.join(project, 'node_modules/@darkroom/client');
  expect((await readdir(installed)).toSorted()).toEqual(['README.md', 'dist', 'package.json']);
  const files = await readdir(path.join(installed, 'dist'), { recursive: true });
  expect(files).toEqual(expect.arrayContaining(['index.js', 'index.d.ts']));
  expect(files.filter((file) => /test|(?<!\.d)\.ts$|tsbuildinfo/.test(file))).toEqual([]);
  const { exports } = JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')) as { exports: object };
  const targets = [...JSON.stringify(exports).matchAll(/"\.\/(?<file>[^"]+\.(?:js|ts))"/g)].map((match) => match[1]!);
  for (const target of targets) await readFile(path.join(installed, target));
});

describe('type-checks every code block of the client’s documents with strict and without skipLibCheck', () => {
  it.each([
    ['moduleResolution nodenext', nodenext],
    ['moduleResolution bundler', bundler],
    ["this repository's source condition (darkroom-source)", { ...bundler, customConditions: ['darkroom-source'] }],
  ])('%s', async (_name, options) => {
    expect(await typeErrors(options)).toBe('');
  });

  it('finds an error in a code block', async () => {
    const wrong = path.join(project, 'wrong.mts');
    await writeFile(wrong, `import { createClient } from '@darkroom/client';\ncreateClient({ baseUrl: 8080 });\n`);
    expect(await typeErrors(nodenext)).toMatch(/wrong\.mts.*TS2322/s);
    await rm(wrong);
  });
});

it('types the events of a stream by the kind of the request, in a browser project without Node types', async () => {
  const file = path.join(project, 'kinds.mts');
  await writeFile(file, kindsProgram);
  const config = { ...bundler, lib: ['es2023', 'dom', 'dom.iterable'], types: [], noUnusedLocals: false };
  const examples = await readExamples();
  for (const { name } of examples) await rm(path.join(project, `${name}.mts`));
  expect(await typeErrors(config)).toBe('');
  await rm(file);
  for (const { name, code } of examples) await writeFile(path.join(project, `${name}.mts`), code);
});

const kindsProgram = `
import { createClient, type ImageInfo, type RequestEvent, type WrittenText } from '@darkroom/client';
const client = createClient({ baseUrl: '' });
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<Equals extends true>(): Equals | undefined { return undefined; }

const drawn = await client.submit({ prompt: 'a fox', image: new Blob(), strength: 0.5 });
for await (const event of client.stream(drawn.request_id)) {
  expectType<Equal<typeof event, RequestEvent<'image'>>>();
  if (event.type === 'progress') expectType<Equal<typeof event.step, number>>();
  // @ts-expect-error: images have no deltas
  if (event.type === 'delta') console.log(event);
}
expectType<Equal<Awaited<ReturnType<typeof client.wait<'image'>>>['images'], ImageInfo[]>>();

const { request_id: writtenId } = await client.submit({ model: 'm', messages: [{ role: 'user', content: 'hello' }] });
for await (const event of client.stream(writtenId)) {
  expectType<Equal<typeof event, RequestEvent<'text'>>>();
  // @ts-expect-error: texts have no images
  if (event.type === 'image') console.log(event);
}
const { texts } = await client.wait(writtenId);
expectType<Equal<typeof texts, WrittenText[]>>();

// Models of both kinds take an image beside a prompt.
const asked = await client.submit({ prompt: 'what is this?', image: new Blob() });
expectType<Equal<typeof asked.request_id, string>>();

const { request_id: id } = await client.submit({ prompt: 'a fox' });
expectType<Equal<typeof id, string>>();
for await (const event of client.stream(id)) {
  expectType<Equal<typeof event, RequestEvent>>();
  if (event.type === 'progress') console.log(event.preview ?? event.tokens);
}
const named = await client.submit<'text'>({ prompt: 'once upon a time' });
for await (const event of client.stream(named.request_id)) expectType<Equal<typeof event, RequestEvent<'text'>>>();
for await (const event of client.stream<'image'>('id')) expectType<Equal<typeof event, RequestEvent<'image'>>>();

// @ts-expect-error: no request has this field
await client.submit({ prompt: 'a fox', seeed: 7 });
`;

it('runs every example of the documents against a running API', async () => {
  const outputs = new Map<string, string>();
  for (const { name, code } of (await readExamples()).filter(({ code: text }) => !text.includes('type RequestEvent'))) {
    await writeFile(path.join(project, `${name}.mjs`), code.replace('http://127.0.0.1:8080', system.url));
    outputs.set(name, await run(process.execPath, [`${name}.mjs`]));
  }
  expect(outputs.get('client-0')).toMatch(/has 0 before it\nstep \d+ of 20 /);
  expect(outputs.get('client-1')).toContain('succeeded [');
  expect(outputs.get('client-2')).toContain(`text: 'a birthday cake`);
  const png = await readFile(path.join(project, 'apple-0.png'));
  expect([...png.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
});

it('bundles for browsers without Node modules', async () => {
  const source = path.join(project, 'browser');
  await mkdir(source);
  await writeFile(
    path.join(source, 'main.js'),
    `import { createClient } from '@darkroom/client';\nexport const models = (baseUrl) => createClient({ baseUrl }).models();\n`,
  );
  const warnings: string[] = [];
  await build({
    root: project,
    configFile: false,
    logLevel: 'silent',
    build: {
      outDir: path.join(project, 'bundle'),
      lib: { entry: path.join(source, 'main.js'), formats: ['es'], fileName: 'main' },
      rolldownOptions: { onLog: (_level, { message }) => void warnings.push(message) },
    },
  });
  const [file] = await readdir(path.join(project, 'bundle'));
  const bundle = path.join(project, 'bundle', file!);
  expect(warnings).toEqual([]);
  expect(await readFile(bundle, 'utf8')).not.toMatch(/\bimport\s*[("'{*]|\brequire\(|node:/);
  const { models } = (await import(pathToFileURL(bundle).href)) as {
    models: (url: string) => Promise<{ id: string }[]>;
  };
  expect((await models(system.url)).map(({ id }) => id)).toContain('emoji-sd');
});
