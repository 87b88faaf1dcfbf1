/**
 * An engine's process, a module's process and servers upstream, by either API, are killed and frozen, for shorter and for longer than leases and patience
 * last, while all of them write: every request ends once, with one whole text, and readers never have any of it twice.
 */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readRequest } from '@darkroom/store';
import { expect, it, onTestFinished, vi } from 'vitest';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { poll, submit } from '../e2e/client.ts';
import { growText } from '../e2e/grown-text.ts';
import { openSystem, type Part, type System } from '../e2e/system.ts';
import { freePort } from './llama-server.ts';

const folder = join(import.meta.dirname, '__fixtures__');
const timeout = 300_000;
/** A lease lives as long as its worker is heard of. */
const leaseMs = 2500;
const engineTimeoutS = 5;
/** Longer than a lease; and longer than anybody waits for an answer. */
const freezesMs = [leaseMs + 500, 1000 * engineTimeoutS + leaseMs];
const requestsEach = 8;
const events = 4;

const engineModel = 'emoji-writer';

type Fault = 'kill' | 'freeze';

interface Body {
  model: string;
  prompt: string;
  max_tokens: number;
  [field: string]: unknown;
}

/** What is disturbed. */
interface Target {
  model: string;
  tokens: { least: number; most: number };
  pid: () => Promise<number>;
  /** After a kill, where nobody else does that. */
  restart?: () => Promise<unknown>;
}

/** The process under a worker, as soon as there is one. */
function childOf({ process: { pid } }: Part): Promise<number> {
  return vi.waitFor(() => Number(execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).trim()), 30_000);
}

/** Nothing for one that is gone by then. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const tokens = { least: 300, most: 600 };

/** A server with its worker; what it speaks is the name of its model. */
async function openUpstream(system: System, api: 'llama.cpp' | 'openai'): Promise<Target> {
  const port = await freePort();
  const startServer = async () => {
    const child = fork(join(folder, 'chaos-server.mjs'), [String(port)], { execArgv: [] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child, 'message');
    return child;
  };
  let server = await startServer();
  const UPSTREAM_URL = `http://127.0.0.1:${port}`;
  const environment = { EXECUTOR: 'http', UPSTREAM_API: api, UPSTREAM_URL, UPSTREAM_SLOTS: '4', MODEL_ID: api };
  await system.start('worker', environment);
  return {
    model: api,
    tokens,
    pid: () => Promise.resolve(server.pid!),
    restart: async () => (server = await startServer()),
  };
}

async function openTargets(system: System): Promise<Target[]> {
  const [engine, module, ...upstreams] = await Promise.all([
    system.start('worker', { MODEL_DIR: 'models/emoji-writer', NUM_THREADS: '1', CHECKPOINT_STEPS: '7' }),
    system.start('worker', { EXECUTOR: join(folder, 'chaos-module.mjs'), MODEL_ID: 'module' }),
    openUpstream(system, 'llama.cpp'),
    openUpstream(system, 'openai'),
  ]);
  return [
    { model: engineModel, tokens: { least: 100, most: 200 }, pid: () => childOf(engine) },
    { model: 'module', tokens, pid: () => childOf(module) },
    ...upstreams,
  ];
}

/** Each in another part of what is written. */
function plan(random: RandomNumbers): { share: number; fault: Fault; freezeMs: number }[] {
  return Array.from({ length: events }, (_, at) => ({
    share: (at + 0.2 + 0.6 * random.next()) / events,
    fault: at % 2 === 0 ? 'kill' : 'freeze',
    freezeMs: freezesMs[Math.floor(random.next() * freezesMs.length)]!,
  }));
}

async function disturb({ pid, restart }: Target, { fault, freezeMs }: { fault: Fault; freezeMs: number }) {
  const victim = await pid();
  if (fault === 'kill') {
    signal(victim, 'SIGKILL');
    await restart?.();
    return;
  }
  signal(victim, 'SIGSTOP');
  // That it lasts so long is the fault.
  await delay(freezeMs);
  signal(victim, 'SIGCONT');
}

/** What it has to be: of the servers and modules all words of the run that its first is of, of an engine what it writes undisturbed. */
async function expectedText(system: System, body: Body, text: string): Promise<string> {
  if (body.model === engineModel) return (await growText(system.url, await submit(system.url, body))).text;
  const run = text.slice(0, 8);
  return Array.from({ length: body.max_tokens }, (_, at) => `${run}:${at} `).join('');
}

it.each([17, 29])('nothing is lost and nothing is doubled (seed %i)', { timeout }, async (seed) => {
  const environment = {
    WORKER_TTL_MS: String(leaseMs),
    ENGINE_TIMEOUT_S: String(engineTimeoutS),
    MAX_ATTEMPTS: '20',
  };
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'], environment });
  const random = new RandomNumbers(seed);
  const between = (low: number, high: number): number => low + Math.floor(random.next() * (high - low + 1));
  const outcomes = (await openTargets(system)).map(async (target) => {
    const { model, tokens } = target;
    const bodies: Body[] = Array.from({ length: requestsEach }, (_, at) => ({
      model,
      prompt: 'a cat',
      max_tokens: between(tokens.least, tokens.most),
      temperature: 1,
      ignore_eos: true,
      seed: 100 * seed + at,
    }));
    const all = bodies.reduce((sum, { max_tokens: count }) => sum + count, 0);
    const faults = plan(random);
    let written = 0;
    const news = new EventTarget();
    const charactersPerToken = model === engineModel ? 3 : 11;
    const chaos = (async () => {
      for (const event of faults) {
        while (written < event.share * all * charactersPerToken) await once(news, 'written');
        await disturb(target, event);
      }
    })();
    const reads = await Promise.all(
      bodies.map(async (body) => {
        const id = await submit(system.url, body);
        const said = await growText(system.url, id, (characters) => {
          written += characters;
          news.dispatchEvent(new Event('written'));
        });
        return { id, body, ...said };
      }),
    );
    // Where less was written than was thought, the rest of it hits nobody.
    written = Infinity;
    news.dispatchEvent(new Event('written'));
    await chaos;
    return { model, reads };
  });
  for (const { model, reads } of await Promise.all(outcomes)) {
    for (const { id, body, text, ends, misplaced } of reads) {
      expect([ends, misplaced]).toEqual([['succeeded'], 0]);
      const { texts } = (await poll(system.url, id)) as unknown as { texts: { text: string }[] };
      expect(texts.map((each) => each.text)).toEqual([text]);
      expect(text).toBe(await expectedText(system, body, text));
    }
    const requests = await Promise.all(reads.map(({ id }) => readRequest(system.store, id)));
    const attempts = requests.map((found) => (found as { request: { attempts: number } }).request.attempts);
    const resets = reads.reduce((sum, read) => sum + read.resets, 0);
    // The chaos has hit: an engine of ours goes on from checkpoints, and the others write another text.
    const isEngine = model === engineModel;
    expect([model, resets > 0, isEngine || Math.max(...attempts) > 1]).toEqual([model, !isEngine, true]);
  }
  const { queues } = (await (await fetch(`${system.url}/status`)).json()) as {
    queues: { model: string; requeued: { engine_failed: number } }[];
  };
  expect(queues.filter(({ requeued }) => requeued.engine_failed > 0)).toHaveLength(4);
});
