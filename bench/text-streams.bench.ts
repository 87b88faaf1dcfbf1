/**
 * Latency that queue, engine process, Redis and HTTP add to a token, and 200 simultaneous streams on one API. The bare
 * pipeline generates the same texts in this process, with as many rows in a batch as the worker has slots.
 */
import { join, resolve } from 'node:path';
import { loadTextPipeline, type TextPipeline } from '@darkroom/language';
import { parseExposition } from '@darkroom/testing';
import { it } from 'vitest';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { readTextFrames } from '../test/e2e/text-frames.ts';
import { publishAtEnd } from './publish.ts';
import { medianWithRange, quantile } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const root = resolve(import.meta.dirname, '..');
const promptTokens = 14;
const maxTokens = 24;
/** Rows that fit the KV cache of a worker: KV_TOKENS is 2048. */
const rows = Math.floor(2048 / (promptTokens + maxTokens));
const rounds = 3;
const streams = 200;

/** Results by model. */
const found: Record<string, Record<string, Cell>> = {};

publishAtEnd(() => ({
  name: 'text-streams',
  title: `What the system adds to a token, and how ${streams} streams fare`,
  notes: [
    `/generate with stream, prompts of ${promptTokens} tokens, ${maxTokens} generated, one worker with one thread, against the bare pipeline with as many rows in a batch (${rows}, which fit the KV cache), alternating. Medians of ${rounds} rounds, with minimum and maximum. The aim is at most 2 ms added per token.`,
    `With ${streams} at once most of the time to the first chunk is spent in the queue: ${rows} of them fit a worker.`,
  ],
  tables: [
    tableOf('One at a time, ms of a token (less is better)', found, ['bare', 'POST to end', 'added']),
    tableOf(`${streams} at once, ms of a token (less is better)`, found, [
      'a token of a row, bare',
      'a token of a stream, p50',
      'added to it',
    ]),
    tableOf('ms of a processor for a token (less is better)', found, [
      'bare, of a processor',
      'added by API, former, janitor and worker',
    ]),
    tableOf(`${streams} at once, tokens a second (more is better)`, found, ['bare pipeline', 'streams']),
    tableOf(`${streams} at once, streams ÷ bare pipeline (more is better)`, found, ['tokens a second'], false),
    tableOf(
      'Waiting, ms (less is better)',
      found,
      [
        'alone: POST to first piece',
        'alone: longest gap',
        'at once: POST to first piece, p50',
        'at once: POST to first piece, p99',
        'at once: longest gap, p50',
        'at once: longest gap, worst',
      ],
      false,
    ),
  ],
}));

/** Returns the request with this number; deterministic. */
function bodyOf(number: number) {
  const prompt = Array.from({ length: promptTokens }, (_, at) => 4 + ((number * 131 + at * 17) % 2000));
  return { prompt, temperature: 1, seed: number };
}

interface Stream {
  /** From the POST to the first chunk. */
  firstMs: number;
  /** From the POST to the end. */
  totalMs: number;
  /** From the first chunk to the last, per token after the first chunk. */
  tokenMs: number;
  /** Longest time between two chunks. */
  gapMs: number;
}

async function writeStream({ url }: System, model: string, number: number): Promise<Stream> {
  const begunAtMs = performance.now();
  const body = { model, ...bodyOf(number), max_tokens: maxTokens, ignore_eos: true, stream: true };
  const response = await fetch(`${url}/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const pieces: { atMs: number; tokens: number }[] = [];
  for await (const { event, data } of readTextFrames(response))
    if (event === 'append' && !data.finished) pieces.push({ atMs: performance.now(), tokens: data.token_ids.length });
  const [first, ...others] = pieces as [(typeof pieces)[0], ...typeof pieces];
  const tokens = others.reduce((sum, piece) => sum + piece.tokens, 0);
  return {
    firstMs: first.atMs - begunAtMs,
    totalMs: performance.now() - begunAtMs,
    tokenMs: tokens === 0 ? 0 : (pieces.at(-1)!.atMs - first.atMs) / tokens,
    gapMs: Math.max(0, ...others.map(({ atMs }, at) => atMs - pieces[at]!.atMs)),
  };
}

/** Returns the ms to generate texts with this many rows in a batch; a finished row is replaced at once. */
async function writeBare(pipeline: TextPipeline, numbers: readonly number[], together: number): Promise<number> {
  const table = new TextTable(pipeline);
  const waiting = [...numbers];
  const begunAtMs = performance.now();
  while (waiting.length > 0 || table.size > 0) {
    while (waiting.length > 0 && table.size < together) {
      const number = waiting.shift()!;
      await table.join(`${number}`, textInput({ ...bodyOf(number), maxTokens, ignoreEos: true }));
    }
    await table.tick();
  }
  return performance.now() - begunAtMs;
}

/** Returns the CPU ms of all parts, except the worker's engine and Redis. */
async function processorMs({ parts }: System): Promise<number> {
  const seconds = await Promise.all(
    parts.map(async ({ name, metricsUrl }) => {
      const page = parseExposition(await (await fetch(`${metricsUrl}/metrics`)).text());
      return page.value('process_cpu_seconds_total', { app: name })!;
    }),
  );
  return 1000 * seconds.reduce((sum, each) => sum + each, 0);
}

it.each(['emoji-writer', 'emoji-writer-diffusion'])(
  '%s through the full system',
  async (model) => {
    const directory = join(root, 'models', model);
    const pipeline = await loadTextPipeline({ directory, threads: 1, prefixCacheTokens: 0 });
    const worker = { name: 'worker', environment: { MODEL_DIR: directory, NUM_THREADS: '1' } } as const;
    const system = await startSystem({ parts: ['api', 'batch-former', 'janitor', worker], environment: longWorkerTtl });
    try {
      const alone: { bareMs: number; stream: Stream }[] = [];
      for (let number = 0; number < 40; number++) {
        const bareMs = await writeBare(pipeline, [number], 1);
        const stream = await writeStream(system, model, number);
        // The first texts warm up both.
        if (number >= 10) alone.push({ bareMs, stream });
      }
      const numbers = Array.from({ length: streams }, (_, at) => 1000 + at);
      const many: { bareMs: number; bareProcessorMs: number; totalMs: number; addedMs: number; all: Stream[] }[] = [];
      for (let round = 0; round < rounds; round++) {
        const bareBegun = process.cpuUsage();
        const bareMs = await writeBare(pipeline, numbers, rows);
        const { user, system: kernel } = process.cpuUsage(bareBegun);
        const before = await processorMs(system);
        const begunAtMs = performance.now();
        const all = await Promise.all(numbers.map((number) => writeStream(system, model, number)));
        const totalMs = performance.now() - begunAtMs;
        const addedMs = (await processorMs(system)) - before;
        many.push({ bareMs, bareProcessorMs: (user + kernel) / 1000, totalMs, addedMs, all });
      }
      const ofAlone = (of: (measured: (typeof alone)[0]) => number) => medianWithRange(alone.map(of))!.value;
      const ofMany = (of: (measured: (typeof many)[0]) => number) => medianWithRange(many.map(of));
      const at = (share: number, of: (stream: Stream) => number) => ofMany(({ all }) => quantile(all.map(of), share));
      const tokens = streams * maxTokens;
      const tokenMsOf = ({ bareMs }: (typeof many)[0]) => (bareMs * rows) / tokens;
      const p50Of = ({ all }: (typeof many)[0]) =>
        quantile(
          all.map(({ tokenMs }) => tokenMs),
          0.5,
        );
      found[model] = {
        bare: ofAlone(({ bareMs }) => bareMs / maxTokens),
        'POST to end': ofAlone(({ stream }) => stream.totalMs / maxTokens),
        added: ofAlone(({ bareMs, stream }) => (stream.totalMs - bareMs) / maxTokens),
        'bare pipeline': ofMany(({ bareMs }) => (1000 * tokens) / bareMs),
        streams: ofMany(({ totalMs }) => (1000 * tokens) / totalMs),
        // CPU times, which depend little on other load of the machine.
        'bare, of a processor': ofMany(({ bareProcessorMs }) => bareProcessorMs / tokens),
        'added by API, former, janitor and worker': ofMany(({ addedMs }) => addedMs / tokens),
        'alone: POST to first piece': ofAlone(({ stream }) => stream.firstMs),
        'alone: longest gap': ofAlone(({ stream }) => stream.gapMs),
        'at once: POST to first piece, p50': at(0.5, ({ firstMs }) => firstMs),
        'at once: POST to first piece, p99': at(0.99, ({ firstMs }) => firstMs),
        'at once: longest gap, p50': at(0.5, ({ gapMs }) => gapMs),
        'at once: longest gap, worst': at(1, ({ gapMs }) => gapMs),
        'tokens a second': ofMany(({ bareMs, totalMs }) => bareMs / totalMs),
        'a token of a row, bare': ofMany(tokenMsOf),
        'a token of a stream, p50': ofMany(p50Of),
        'added to it': ofMany((each) => p50Of(each) - tokenMsOf(each)),
      };
    } finally {
      await stopSystem(system);
      await pipeline.dispose();
    }
  },
  600_000,
);
