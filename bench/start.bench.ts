/**
 * Time from `npm start` to the first image on a machine that is set up, and memory of the system afterwards: the real
 * command, which starts its own Redis.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { memoryBeside } from './memory-beside.ts';
import { childrenOf } from './processes.ts';
import { publish } from './publish.ts';
import { median } from './report.ts';
import { tableOf } from './table.ts';

const rounds = 5;
const restMs = 15_000;
const root = new URL('..', import.meta.url).pathname;

/** An event of the probe or the log; `at` in ms since 1970. */
interface Moment {
  what: string;
  at: number;
}

/** Time of the first event of each name, ms since the command. */
type Moments = ReadonlyMap<string, number>;

interface Run {
  moments: Moments;
  /** Memory in MB by process. */
  memory: Readonly<Record<string, number>>;
}

const scripts: readonly (readonly [part: string, name: string])[] = [
  ['tools/start.mjs', 'launcher'],
  ['light.mjs', 'API and others'],
  ['worker/dist/main.js', 'worker'],
  ['engine-process.js', 'first engine'],
];

/** Log lines that mark a milestone, and its name. */
const milestonePatterns: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/using \S*redis-server/, 'settings read, all built'],
  [/"app":"api".*"msg":"ready"/, 'API ready'],
  [/"app":"worker".*"part":"unet","device"/, 'model of images loaded'],
  [/"app":"worker".*"msg":"loaded"/, 'first model ready'],
  [/"app":"worker".*"model":"emoji-sd".*"msg":"serving"/, 'model of images serves'],
  [/"app":"worker".*"msg":"ready"/, 'all models serve'],
  [/running at http/, 'greeted'],
];

async function run(shouldMeasureMemory: boolean): Promise<Run> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-start-'));
  const probeFile = join(directory, 'probe.jsonl');
  const moments: Moment[] = [];
  const probe = `--import ${new URL('start-probe.mjs', import.meta.url).href}`;
  const beganAt = Date.now();
  const child = spawn('npm', ['start'], {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      PORT: '0',
      // The probe takes memory itself.
      ...(!shouldMeasureMemory && { NODE_OPTIONS: probe, START_PROBE_FILE: probeFile }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The system stops when npm ends, and closes its output then.
  const stopped = once(child, 'close');
  const output = listenTo(child, moments);
  try {
    await output.until('model of images serves');
    await ended(output.url, await submit(output.url, { prompt: 'a red apple on a white background' }));
    moments.push({ what: 'first image', at: Date.now() });
    await output.until('greeted');
    const text = { model: 'emoji-writer', prompt: 'something sweet', max_tokens: 40 };
    await ended(output.url, await submit(output.url, text));
    if (!shouldMeasureMemory) moments.push(...probed(readFileSync(probeFile, 'utf8')));
    else await delay(restMs);
    const memory = shouldMeasureMemory ? memoryBeside([child.pid!, ...childrenOf(child.pid!)]) : {};
    return { moments: since(beganAt, moments), memory };
  } finally {
    child.kill('SIGTERM');
    await stopped;
    rmSync(directory, { recursive: true });
  }
}

/** Records milestones from the log; `until` waits for one. */
function listenTo(child: ChildProcess, moments: Moment[]) {
  const milestones = new EventEmitter();
  const listener = { url: '', until };
  createInterface({ input: child.stdout! }).on('line', (line) => {
    listener.url ||= /"url":"(?<url>http[^"]+)"/.exec(line)?.groups?.['url'] ?? '';
    for (const [pattern, what] of milestonePatterns) {
      if (!pattern.test(line)) continue;
      moments.push({ what, at: Date.now() });
      milestones.emit(what);
    }
  });
  const gone = new AbortController();
  child.once('exit', () => gone.abort());

  async function until(wanted: string): Promise<void> {
    if (!moments.some(({ what }) => what === wanted)) await once(milestones, wanted, { signal: gone.signal });
  }
  return listener;
}

function probed(lines: string): Moment[] {
  return lines
    .trim()
    .split('\n')
    .flatMap((line) => {
      const { script, phase, at } = JSON.parse(line) as { script: string; phase: 'process' | 'modules'; at: number };
      const name = scripts.find(([part]) => script.endsWith(part))?.[1];
      const what = phase === 'process' ? 'begins' : 'has its modules';
      return name === undefined ? [] : [{ what: `${name} ${what}`, at }];
    });
}

function since(beganAt: number, moments: readonly Moment[]): Moments {
  const first = new Map<string, number>();
  for (const { what, at } of moments.toSorted((left, right) => left.at - right.at))
    if (!first.has(what)) first.set(what, at - beganAt);
  return first;
}

it('from npm start to the first image', { timeout: 600_000 }, async () => {
  // Discard the first run: it builds what has changed.
  await run(false);
  const runs: Moments[] = [];
  for (let round = 0; round < rounds; round++) runs.push((await run(false)).moments);
  const names = [...new Set(runs.flatMap((moments) => [...moments.keys()]))];
  const medians = names.map((name) => [name, median(runs.flatMap((moments) => moments.get(name) ?? []))] as const);
  const { memory } = await run(true);
  const all = Object.values(memory).reduce((sum, part) => sum + part, 0);
  publish({
    name: 'start',
    title: 'From npm start to the first image, and the memory it takes',
    notes: [
      `The real command on a machine that is set up; medians of ${rounds} runs. The aim is 4,000 ms to the first image.`,
      'Memory is measured at rest, after an image and a text; shared pages count once. The aim is 450 MB, set for three models; the engine of a fourth takes about 50.',
    ],
    tables: [
      tableOf('Since the command, ms (less is better)', {
        ms: Object.fromEntries(medians.toSorted(([, left], [, right]) => left - right)),
      }),
      tableOf('Memory at rest, MB (less is better)', { MB: { ...memory, all } }),
    ],
  });
});
