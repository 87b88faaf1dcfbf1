/** The wheel of the Python client, installed apart from its sources: its own tests, types, documents and outages. */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { longWorkerTtl, openSystem, startSystem, stopSystem, type System } from '../e2e/system.ts';
import { installPythonPackages, runPip } from './python-packages.ts';

const root = new URL('../../', import.meta.url).pathname;
const client = join(root, 'clients/python');
const tools = ['httpx==0.28.1', 'build==1.6.1', 'hatchling==1.33.0', 'pytest==9.2.0', 'mypy==2.4.1', 'ruff==0.17.6'];

let system: System;
/** The installed wheel, and programs that use it. */
let project = '';
let environment: NodeJS.ProcessEnv = {};

beforeAll(async () => {
  const packages = await installPythonPackages(...tools);
  project = await mkdtemp(join(tmpdir(), 'python-client-'));
  environment = {
    PATH: `${packages}/bin:${process.env['PATH']}`,
    PYTHONPATH: `${join(project, 'installed')}:${packages}`,
    PYTHONDONTWRITEBYTECODE: '1',
    MYPY_CACHE_DIR: join(project, 'mypy'),
  };
  // As for a release: first the archive of the sources, and from it the wheel.
  await run('python3', ['-m', 'build', '--no-isolation', '--outdir', project, client], project);
  const wheel = join(project, 'darkroom_client-0.1.0-py3-none-any.whl');
  await runPip('--no-deps', '--no-index', '--target', join(project, 'installed'), wheel);
  const workers = ['emoji-sd', 'emoji-writer', 'emoji-writer-diffusion'].map((model) => ({
    name: 'worker' as const,
    environment: { MODEL_DIR: `models/${model}` },
  }));
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor', ...workers], environment: longWorkerTtl });
}, 600_000);
afterAll(() => Promise.all([stopSystem(system), rm(project, { recursive: true, force: true })]));

/** Runs a program. Resolves with its output; rejects with the output if the exit code is not 0. */
function run(program: string, args: readonly string[], cwd: string, extra: NodeJS.ProcessEnv = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env: { ...environment, ...extra } }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} ${args.join(' ')}\n${stdout}\n${stderr}`, { cause: error }));
    });
  });
}

it('the wheel contains types, the licence and no tests', async () => {
  const files = await readdir(join(project, 'installed'), { recursive: true });
  const metadata = 'darkroom_client-0.1.0.dist-info';
  const expected = ['darkroom_client/py.typed', `${metadata}/METADATA`, `${metadata}/licenses/LICENSE`];
  expect(files).toEqual(expect.arrayContaining(expected));
  expect(files.filter((file) => file.includes('test'))).toEqual([]);
  const licence = await readFile(join(project, 'installed', metadata, 'licenses/LICENSE'), 'utf8');
  expect(licence).toBe(await readFile(join(root, 'LICENSE'), 'utf8'));
});

it('passes mypy --strict and ruff', async () => {
  expect(await run('python3', ['-m', 'mypy', '--strict'], client)).toContain('Success: no issues found');
  await run('ruff', ['check', '--no-cache'], client);
  await run('ruff', ['format', '--no-cache', '--check'], client);
}, 240_000);

const pytest = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider'];

it('blocking and async: resumes, retries and cancels on a server that breaks connections', async () => {
  expect(await run('python3', [...pytest, '--ignore', 'tests/system'], client)).toMatch(/^\d{3} passed/m);
}, 240_000);

it('blocking and async: submits, streams, waits, cancels and downloads images and texts of a running system', async () => {
  const output = await run('python3', [...pytest, 'tests/system'], client, { DARKROOM_URL: system.url });
  expect(output).toMatch(/^\d{2} passed/m);
  expect(output).not.toContain('skipped');
}, 240_000);

/** Returns the programs of the client's documents. */
async function readPrograms(): Promise<string[]> {
  const texts = ['docs/client-python.md', 'clients/python/README.md'].map((file) => readFile(join(root, file), 'utf8'));
  const blocks = (await Promise.all(texts)).flatMap((text) => [...text.matchAll(/^```python\n(.*?)^```$/gms)]);
  return blocks.map(([, code]) => code!);
}

describe('docs/client-python.md and clients/python/README.md', () => {
  it('each program runs unchanged', async () => {
    const outputs: string[] = [];
    for (const program of await readPrograms()) {
      const code = program.replace('http://127.0.0.1:8080', system.url);
      outputs.push(await run('python3', ['-c', code], project));
    }
    const [apple, strawberry, text, error, readme] = outputs;
    expect(apple).toMatch(/^emoji-sd-\w+ has 0 before it\nstep \d+ of 20 /);
    expect(apple).toMatch(/\nstep 5 of 20 data:image\/jpeg;base64,/);
    expect(strawberry).toMatch(/^succeeded\n\/v1\/predict\/\S+\/images\/0 \d+ \d+\n$/);
    expect(text).toMatch(/^a birthday cake .* background\n \[\{'index': 0, 'text': 'a birthday cake/);
    expect(error).toBe('400 invalid_value n\n');
    expect(readme).toContain('step 20 of 20\n');
    expect((await readFile(join(project, 'apple.png'))).subarray(1, 4).toString()).toBe('PNG');
  });

  it('each program passes mypy --strict with the types of the wheel', async () => {
    const files: string[] = [];
    for (const [index, program] of (await readPrograms()).entries()) {
      files.push(join(project, `program_${index}.py`));
      await writeFile(files.at(-1)!, program);
    }
    expect(await run('python3', ['-m', 'mypy', '--strict', ...files], project)).toContain('Success: no issues found');
    const wrong = join(project, 'wrong.py');
    await writeFile(wrong, 'from darkroom_client import Darkroom\nDarkroom("http://x").submit(prompt="x", seeed=7)\n');
    await expect(run('python3', ['-m', 'mypy', '--strict', wrong], project)).rejects.toThrow('seeed');
  }, 240_000);
});

interface FollowedEvent {
  type: string;
  step?: number;
  offset?: number;
  text?: string;
  preview?: string;
  data?: string;
}

interface Result {
  type: 'result';
  streams_opened: number;
  again: FollowedEvent[];
  view: { status: string; texts?: { text: string }[] };
  images: { data: string }[];
}

/** Streams a request in Python. Each event waits until `onEvent` of the one before it has resolved. */
async function follow(
  kind: string,
  url: string,
  request: object,
  onEvent: (event: FollowedEvent) => Promise<void>,
): Promise<{ seen: FollowedEvent[]; result: Result }> {
  const args = [join(client, 'tests/system/follow.py'), kind, url, JSON.stringify(request)];
  const child: ChildProcessWithoutNullStreams = spawn('python3', args, { env: environment });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const seen: FollowedEvent[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as FollowedEvent | Result;
    if ('again' in event) {
      await once(child, 'close');
      return { seen, result: event };
    }
    seen.push(event);
    await onEvent(event);
    child.stdin.write('\n');
  }
  throw new Error(`the program ended: ${errors}`);
}

interface FollowedSystem {
  url: string;
  /** Ends the API, and starts it at the same address. */
  restart: (end: 'kill' | 'stop') => Promise<void>;
  /** Restarts the API while the request is queued, so that it cannot be done before, and then lets it run. */
  restartWhileQueued: () => Promise<void>;
}

async function openFollowedSystem(model: string): Promise<FollowedSystem> {
  const environment = { PORT: String(await freePort()), MODEL_DIR: `models/${model}` };
  const opened = await openSystem({ parts: ['api', 'janitor', 'worker'], environment });
  const restart = async (end: 'kill' | 'stop'): Promise<void> => {
    await opened.part('api')[end]();
    await opened.start('api');
  };
  const restartWhileQueued = async (): Promise<void> => {
    await restart('kill');
    await opened.start('batch-former');
  };
  return { url: opened.url, restart, restartWhileQueued };
}

/** Returns events as a later stream has them: the log has no previews after the end. */
function withoutPreviews(events: readonly FollowedEvent[]): FollowedEvent[] {
  return events.map(({ preview: _preview, ...event }) => event);
}

describe.each(['blocking', 'async'])('the %s client, while its API is killed and then stopped', (kind) => {
  it('resumes a stream of images without lost or repeated events', async () => {
    const { url, restart, restartWhileQueued } = await openFollowedSystem('emoji-sd');
    const request = { prompt: 'a red apple', num_inference_steps: 150, seed: 7, preview: { every: 10 } };
    const { seen, result } = await follow(kind, url, request, async ({ type, step }) => {
      if (type === 'queued') await restartWhileQueued();
      if (step === 20) await restart('kill');
      if (step === 80) await restart('stop');
    });
    const steps = seen.filter(({ type }) => type === 'progress').map(({ step = 0 }) => step);
    expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
    expect(steps.at(-1)).toBe(150);
    const types = seen.map(({ type }) => type).filter((type) => type !== 'progress');
    expect(types).toEqual(['queued', 'started', 'image', 'succeeded']);
    expect(withoutPreviews(result.again)).toEqual(withoutPreviews(seen));
    expect(result.images.map(({ data }) => data)).toEqual([seen.find(({ type }) => type === 'image')!.data]);
    // At first, again after the first restart, and for the comparison; the image may be done before the others.
    expect(result.streams_opened).toBeGreaterThanOrEqual(3);
  }, 120_000);

  it('resumes a stream of a text without lost or repeated text', async () => {
    const { url, restart, restartWhileQueued } = await openFollowedSystem('emoji-writer');
    const request = { prompt: 'once', max_tokens: 230, ignore_eos: true, temperature: 1, seed: 9 };
    const ends: ('kill' | 'stop')[] = ['kill', 'stop'];
    const { seen, result } = await follow(kind, url, request, async ({ type }) => {
      if (type === 'queued') await restartWhileQueued();
      const end = type === 'delta' ? ends.shift() : undefined;
      if (end !== undefined) await restart(end);
    });
    const deltas = seen.filter(({ type }) => type === 'delta');
    let text = '';
    for (const { offset, text: added } of deltas) {
      expect(offset).toBe(text.length);
      text += added;
    }
    expect(seen.filter((event) => event.type === 'text').map((event) => event.text)).toEqual([text]);
    expect(result.view).toMatchObject({ status: 'succeeded', texts: [{ text }] });
    // After the end, the log begins with a snapshot of the text.
    const types = seen.map((event) => event.type).filter((type) => !['progress', 'delta', 'snapshot'].includes(type));
    expect(types).toEqual(['queued', 'started', 'text', 'succeeded']);
    expect(result.streams_opened).toBeGreaterThanOrEqual(3);
    const { seen: undisturbed } = await follow(kind, url, request, async () => {});
    expect(undisturbed.find((event) => event.type === 'text')!.text).toBe(text);
  }, 120_000);
});
