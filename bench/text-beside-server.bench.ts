/**
 * A published model against llama.cpp's own server with the same weights, one thread each: our pipeline alone, and the
 * full system. Clients run closed loops.
 */
import { isNonEmpty } from '@darkroom/core';
import { execFileSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadTextPipeline, type TextPipeline } from '@darkroom/language';
import { it } from 'vitest';
import { RandomNumbers } from '../libs/language/src/sampling/random-numbers.ts';
import { textInput } from '../libs/language/src/testing/text-table.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { readTextFrames } from '../test/e2e/text-frames.ts';
import { llamaTool, type LlamaServer, startBuiltServer, whyNoBuiltServer } from '../test/systems/llama-server.ts';
import { provideSmollm2, provideSmollm2File, whyNoSmollm2 } from '../test/systems/smollm2.ts';
import { childrenOf, cpuSecondsOf, redisPid } from './processes.ts';
import { publish } from './publish.ts';
import { medianWithRange, quantile } from './report.ts';
import type { Cell, Table } from './table.ts';

const sizes = [1, 4, 8, 16];
const rounds = 3;

/** Returns the number of texts per round, at least one per client. */
const textsOf = (inFlight: number) => Math.ceil(1.5 * inFlight) + 2;

interface Work {
  prompt: number[];
  tokens: number;
}

/** Arrival times of the chunks of a text. */
type Times = number[];

interface Peer {
  name: string;
  /** Generates all texts with this many in flight. */
  write(works: readonly Work[], inFlight: number): Promise<Measured[]>;
  /** Returns the serving processes by name. */
  pids(): Readonly<Record<string, readonly number[]>>;
}

interface Measured {
  begunAtMs: number;
  pieces: Times;
}

interface Round {
  wall: number;
  cpu: number;
  firstMs: number;
  gapMs: number;
  /** CPU milliseconds per token, by process. */
  cpuMs: Readonly<Record<string, number>>;
}

/** Returns prompts of 16 to 128 tokens and answers of 16 to 64; new ones per round, so that none is in the cache. */
function worksOf(count: number, seed: number): Work[] {
  const random = new RandomNumbers(seed);
  const between = (low: number, high: number) => low + Math.floor(random.next() * (high - low + 1));
  return Array.from({ length: count }, () => ({
    prompt: Array.from({ length: between(16, 128) }, () => between(100, 40_000)),
    tokens: between(16, 64),
  }));
}

/** Returns a peer that runs the pipeline in this process; a finished row is replaced at once. */
function barePeer(pipeline: TextPipeline): Peer {
  const write = async (works: readonly Work[], inFlight: number): Promise<Measured[]> => {
    const waiting = [...works];
    const all: Measured[] = [];
    const open = new Map<Awaited<ReturnType<TextPipeline['createRows']>>[0], Measured>();
    while (waiting.length > 0 || open.size > 0) {
      while (waiting.length > 0 && open.size < inFlight) {
        const { prompt, tokens } = waiting.shift()!;
        const input = textInput({ prompt, maxTokens: tokens, ignoreEos: true });
        const [row] = await pipeline.createRows({ id: `${all.length}`, input });
        open.set(row!, { begunAtMs: performance.now(), pieces: [] });
        all.push(open.get(row!)!);
      }
      for (const shape of ['read', 'write']) {
        const rows = [...open.keys()].filter(({ shapeKey, isDone }) => shapeKey === shape && !isDone);
        if (!isNonEmpty(rows)) continue;
        const before = rows.map(({ written }) => written.tokens.length);
        await pipeline.step(rows);
        for (const [at, row] of rows.entries())
          if (row.written.tokens.length > before[at]!) open.get(row)!.pieces.push(performance.now());
      }
      for (const row of [...open.keys()].filter(({ isDone }) => isDone)) {
        pipeline.release(row);
        open.delete(row);
      }
    }
    return all;
  };
  return { name: 'pipeline', write, pids: () => ({ pipeline: [process.pid] }) };
}

/** Returns a peer of streaming HTTP clients. */
function httpPeer(name: string, ask: (work: Work) => Promise<Response>, pids: Peer['pids']): Peer {
  const write = async (works: readonly Work[], inFlight: number): Promise<Measured[]> => {
    const waiting = [...works];
    const all: Measured[] = [];
    const client = async (): Promise<void> => {
      for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) {
        const measured: Measured = { begunAtMs: performance.now(), pieces: [] };
        all.push(measured);
        for await (const frame of readTextFrames(await ask(work)))
          if (frame.event === 'append' || frame.event === undefined) measured.pieces.push(performance.now());
      }
    };
    await Promise.all(Array.from({ length: inFlight }, client));
    return all;
  };
  return { name, write, pids };
}

function llamaPeer({ url, pid }: LlamaServer): Peer {
  const fixed = { temperature: 0, ignore_eos: true, cache_prompt: false, stream: true };
  const ask = ({ prompt, tokens }: Work) => post(`${url}/completion`, { prompt, n_predict: tokens, ...fixed });
  return httpPeer('llama.cpp', ask, () => ({ server: [pid] }));
}

function systemPeer({ url, parts }: System, redis: number): Peer {
  const fixed = { model: 'smollm2-135m-instruct', temperature: 0, ignore_eos: true, stream: true };
  const ask = ({ prompt, tokens }: Work) => post(`${url}/generate`, { prompt, max_tokens: tokens, ...fixed });
  return httpPeer('system', ask, () => {
    const own = parts.map((part) => [part.name, [part.process.pid!]] as const);
    return { redis: [redis], ...Object.fromEntries(own), engine: own.flatMap(([, [pid]]) => childrenOf(pid)) };
  });
}

function post(url: string, body: object): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function secondsOf(peer: Peer): Record<string, number> {
  return Object.fromEntries(Object.entries(peer.pids()).map(([name, pids]) => [name, cpuSecondsOf(pids)]));
}

async function measure(peer: Peer, works: readonly Work[], inFlight: number): Promise<Round> {
  const before = secondsOf(peer);
  const begunAtMs = performance.now();
  const all = await peer.write(works, inFlight);
  const seconds = (performance.now() - begunAtMs) / 1000;
  const after = secondsOf(peer);
  const tokens = works.reduce((sum, work) => sum + work.tokens, 0);
  const spent = Object.entries(after).map(
    ([name, total]) => [name, (1000 * (total - before[name]!)) / tokens] as const,
  );
  const gaps = all.flatMap(({ pieces }) => pieces.slice(1).map((atMs, at) => atMs - pieces[at]!));
  return {
    wall: tokens / seconds,
    cpu: 1000 / spent.reduce((sum, [, ms]) => sum + ms, 0),
    cpuMs: Object.fromEntries(spent),
    firstMs: quantile(
      all.map(({ begunAtMs: begun, pieces }) => pieces[0]! - begun),
      0.5,
    ),
    gapMs: Math.max(...gaps),
  };
}

/** Returns the 8-bit file, quantized from the same weights as the ONNX model. */
async function provideQ8(): Promise<string> {
  const file = await provideSmollm2File();
  const target = join(file, '../SmolLM2-135M-Instruct.Q8_0.gguf');
  if (!existsSync(target)) {
    execFileSync(llamaTool('llama-quantize'), ['--allow-requantize', file, `${target}.part`, 'Q8_0', '1']);
    renameSync(`${target}.part`, target);
  }
  return target;
}

const missing = whyNoBuiltServer() ?? whyNoSmollm2();
if (missing !== undefined) console.log(`skipped the comparison with llama.cpp: ${missing}`);

it.skipIf(missing !== undefined)('throughput against llama.cpp', { timeout: 600_000 }, async () => {
  const directory = await provideSmollm2();
  const file = await provideQ8();
  const dtypes = { all: 'int8', parts: {} } as const;
  const pipeline = await loadTextPipeline({ directory, threads: 1, dtypes });
  const own = { MODEL_DIR: directory, MODEL_DTYPE: 'int8', NUM_THREADS: '1', KV_TOKENS: '4096' };
  const worker = { name: 'worker', environment: own } as const;
  const environment = { ...longWorkerTtl, BATCH_MAX_SIZE: '16' };
  const system = await startSystem({ parts: ['api', 'batch-former', 'janitor', worker], environment });
  const found = new Map<number, Found>();
  try {
    for (const inFlight of sizes) {
      const llama = await startBuiltServer({ slots: inFlight, file });
      try {
        while (!(await fetch(`${llama.url}/health`)).ok) await delay(50);
        const peers = [llamaPeer(llama), barePeer(pipeline), systemPeer(system, redisPid())];
        found.set(inFlight, await compare(peers, inFlight));
      } finally {
        await llama.kill();
      }
    }
  } finally {
    await stopSystem(system);
    await pipeline.dispose();
  }
  const table = (title: string, read: (one: Found) => Cell[], columns: string[], drawn?: 'lines'): Table => ({
    title,
    columns: ['in flight', ...columns],
    rows: [...found].map(([inFlight, one]) => [inFlight, ...read(one)]),
    ...(drawn === undefined ? {} : { drawn }),
  });
  const names = ["llama.cpp's server", 'our pipeline alone', 'the whole system'];
  const ratioNames = ['pipeline', 'system', 'pipeline, of a CPU', 'system, of a CPU'];
  publish({
    name: 'text-beside-server',
    title: "SmolLM2-135M-Instruct beside llama.cpp's server",
    notes: [
      `The same weights on both sides, our int8 and Q8_0, one thread each; clients in closed loops: prompts of 16 to 128 tokens, answers of 16 to 64. Medians of ${rounds} alternating rounds, with minimum and maximum.`,
      'Tokens are generated tokens; the time includes reading the prompts. Tokens per CPU second count all threads of all serving processes.',
      "llama.cpp's server is built for this CPU (tools/build-llama-server.mjs), since its releases select code for the CPU, with as many slots as texts in flight.",
    ],
    tables: [
      table('Tokens a second (more is better)', (one) => one.wall, names, 'lines'),
      table('Tokens a second of a CPU (more is better)', (one) => one.cpu, names, 'lines'),
      table("÷ llama.cpp's server (more is better)", (one) => one.ratios, ratioNames),
      table('First piece, p50, ms (less is better)', (one) => one.firstMs, names, 'lines'),
      table('Worst gap between two pieces, ms (less is better)', (one) => one.gapMs, names, 'lines'),
      table(
        'The system, ms of a CPU for a token',
        (one) => Object.values(one.shares),
        Object.keys([...found.values()][0]!.shares),
      ),
    ],
    versions: { 'llama.cpp of llama-cpp-python': /llama-server-(.*)\//.exec(llamaTool('llama-server'))![1]! },
  });
});

/** Results for one number of texts in flight, by peer; `ratios` are relative to the first peer. */
interface Found extends Record<'wall' | 'cpu' | 'firstMs' | 'gapMs' | 'ratios', Cell[]> {
  /** CPU ms per token by process of the system. */
  shares: Record<string, Cell>;
}

async function compare(peers: readonly Peer[], inFlight: number): Promise<Found> {
  for (const peer of peers) await peer.write(worksOf(Math.min(4, inFlight), 0), inFlight);
  const all: Round[][] = [];
  for (let round = 1; round <= rounds; round++) {
    const works = worksOf(textsOf(inFlight), 1000 * inFlight + round);
    const one: Round[] = [];
    for (let at = 0; at < peers.length; at++) {
      const next = (at + round) % peers.length;
      one[next] = await measure(peers[next]!, works, inFlight);
    }
    all.push(one);
  }
  const of = (read: (round: Round) => number): Cell[] =>
    peers.map((_, at) => medianWithRange(all.map((one) => read(one[at]!))));
  const ratios = (read: (round: Round) => number): Cell[] =>
    [1, 2].map((at) => medianWithRange(all.map((one) => read(one[at]!) / read(one[0]!))));
  const names = Object.keys(all[0]!.at(-1)!.cpuMs);
  return {
    wall: of(({ wall }) => wall),
    cpu: of(({ cpu }) => cpu),
    firstMs: of(({ firstMs }) => firstMs),
    gapMs: of(({ gapMs }) => gapMs),
    ratios: [...ratios(({ wall }) => wall), ...ratios(({ cpu }) => cpu)],
    shares: Object.fromEntries(
      names.map((name) => [name, medianWithRange(all.map((one) => one.at(-1)!.cpuMs[name]!))]),
    ),
  };
}
