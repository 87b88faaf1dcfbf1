/**
 * What queue, engine process, Redis and HTTP add to a token, and how 200 streams at once fare on one API. The bare pipeline
 * writes the same texts in this process, with as many rows together as the worker has room for.
 */
import { join, resolve } from 'node:path';
import { loadTextPipeline, type TextPipeline } from '@darkroom/language';
import { parseExposition } from '@darkroom/testing';
import { it } from 'vitest';
import { textInput, TextTable } from '../libs/language/src/testing/text-table.ts';
import { patience, startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { readTextFrames } from '../test/e2e/text-frames.ts';
import { publishAtEnd } from './publish.ts';
import { middle, quantile } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const root = resolve(import.meta.dirname, '..');
const promptTokens = 14;
const maxTokens = 24;
/** As many as there is room for on a worker: KV_TOKENS is 2048. */
const rows = Math.floor(2048 / (promptTokens + maxTokens));
const rounds = 3;
const streams = 200;

/** What was found, by model. */
const found: Record<string, Record<string, Cell>> = {};

publishAtEnd(() => ({
  name: 'text-streams',
  title: `What the system adds to a token, and how ${streams} streams fare`,
  notes: [
    `/generate with stream, prompts of ${promptTokens} tokens, ${maxTokens} written, one worker with one thread, against the bare pipeline with as many rows together (${rows}, what there is room for), in turns. Medians, of ${rounds} rounds with the least and the most. The aim is 2 ms added to a token at most.`,
    `With ${streams} at once most of the time to the first piece is the queue: ${rows} of them fit on a worker together.`,
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

/** The same request for the same number. */
function bodyOf(number: number) {
  const prompt = Array.from({ length: promptTokens }, (_, at) => 4 + ((number * 131 + at * 17) % 2000));
  return { prompt, temperature: 1, seed: number };
}

interface Stream {
  /** From the POST to the first piece. */
  firstMs: number;
  /** From the POST to the end. */
  totalMs: number;
  /** From the first piece to the last, for each token after the first piece. */
  tokenMs: number;
  /** The longest time between two pieces. */
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

/** Milliseconds for texts with so many rows together, whoever leaves being replaced at once. */
async function writeBare(pipeline: TextPipeline, numbers: readonly number[], together: number): Promise<number> {
  const table = new TextTable(pipeline);
  const waiting = [...numbers];
  const begunAtMs = performance.now();
  while (waiting.length > 0 || table.size > 0) {
    while (waiting.length > 0 && table.size < together) {
      const number = waiting.shift()!;
      await table.join(`${number}`, textInput({ ...bodyOf(number), maxTokens, ignoreEos: true }));
    }
    await table.turn();
  }
  return performance.now() - begunAtMs;
}

/** Milliseconds of a processor that all parts have taken, without the engine under the worker and without Redis. */
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
  '%s over the whole system',
  async (model) => {
    const directory = join(root, 'models', model);
    const pipeline = await loadTextPipeline({ directory, threads: 1, keptTokens: 0 });
    const worker = { name: 'worker', environment: { MODEL_DIR: directory, NUM_THREADS: '1' } } as const;
    const system = await startSystem({ parts: ['api', 'batch-former', 'janitor', worker], environment: patience });
    try {
      const alone: { bareMs: number; stream: Stream }[] = [];
      for (let number = 0; number < 40; number++) {
        const bareMs = await writeBare(pipeline, [number], 1);
        const stream = await writeStream(system, model, number);
        // The first ones warm up both.
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
      const ofAlone = (of: (measured: (typeof alone)[0]) => number) => middle(alone.map(of))!.value;
      const ofMany = (of: (measured: (typeof many)[0]) => number) => middle(many.map(of));
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
        // Other work on the machine changes these little.
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
