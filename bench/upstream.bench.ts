/**
 * Overhead of forwarding to an upstream server: time to first token, and tokens per second with all slots in use,
 * directly, through the executor, and through the full system, alternating. The servers are a paced one that uses no
 * CPU, and llama.cpp's with SmolLM2 on the same cores.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createOpenai, type ExecutorEvent, UpstreamExecutor } from '@darkroom/executor';
import type { UpstreamTextInput } from '@darkroom/kinds';
import { it } from 'vitest';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { freePort, installLlamaServer, startLlamaServer } from '../test/systems/llama-server.ts';
import { publishAtEnd } from './publish.ts';
import { medianWithRange, quantile } from './report.ts';
import { type Cell, type Found, tableOf } from './table.ts';

const slots = 2;
const latencyRounds = 60;
const throughputRounds = 9;
const tokens = 48;
const requestsPerSlot = 3;
const queued = 'system, others waiting';
/** Time per token of the paced server. */
const pacedMs = 10;

interface Behind {
  url: string;
  model: string;
  stop: () => Promise<unknown>;
}

async function openLlama(): Promise<Behind> {
  await installLlamaServer();
  const port = await freePort();
  const server = await startLlamaServer({ port, slots });
  return { url: server.url, model: 'smollm2-135m-instruct.q4_1.gguf', stop: () => server.kill() };
}

/** Starts a server that generates at a fixed rate without using CPU, like one on another machine. */
async function openPaced(): Promise<Behind> {
  const model = 'paced';
  const server = createServer((request, response) => {
    if (request.url === '/v1/models') return void response.end(JSON.stringify({ data: [{ id: model }] }));
    void json(request).then((body) => writePaced(response, (body as { max_tokens: number }).max_tokens));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = (): Promise<unknown> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, model, stop };
}

async function writePaced(response: ServerResponse, most: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const say = (choice: object) => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
  const begin = performance.now();
  for (let at = 1; at <= most; at++) {
    // Schedule from the start, so that delays do not accumulate.
    await delay(Math.max(0, begin + at * pacedMs - performance.now()));
    say({ text: ' word', finish_reason: null });
  }
  say({ text: '', finish_reason: 'length' });
  response.end('data: [DONE]\n\n');
}

/** Generates a text to its end. @returns the ms from the request to its first token. */
type Ask = (max: number, seed: number) => Promise<number>;

const askOf = (max_tokens: number) => ({ prompt: 'Once upon a time', max_tokens, ignore_eos: true, temperature: 0 });

/** Returns a client of OpenAI's API. */
function clientOf(url: string, model: string): Ask {
  return async (max, seed) => {
    const begin = performance.now();
    const body = JSON.stringify({ model, ...askOf(max), seed, stream: true });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body });
    let first: number | undefined;
    for await (const chunk of response.body!)
      if (Buffer.from(chunk).includes('"text":')) first ??= performance.now() - begin;
    return first!;
  };
}

function executorOf(url: string, model: string): { ask: Ask; executor: UpstreamExecutor } {
  const listeners = new Map<string, (event: ExecutorEvent) => void>();
  const executor = new UpstreamExecutor({
    url,
    createProtocol: createOpenai,
    model,
    maxSlots: slots,
    onEvents: (events) => {
      for (const event of events) if ('requestId' in event) listeners.get(event.requestId)?.(event);
    },
  });
  let count = 0;
  const ask: Ask = (max, seed) =>
    new Promise((resolve, reject) => {
      const id = `${count++}`;
      const begin = performance.now();
      let first: number | undefined;
      listeners.set(id, (event) => {
        if (event.type === 'delta') first ??= performance.now() - begin;
        if (event.type === 'request-done') resolve(first!);
        else if (event.type.startsWith('request-')) reject(new Error(JSON.stringify(event)));
      });
      const input: UpstreamTextInput = { params: askOf(max), n: 1, seed, maxTokens: max };
      executor.submit([{ id, input }]);
    });
  return { ask, executor };
}

/** Measures throughput. @param clients number of clients in closed loops. */
async function tokensPerSecond(ask: Ask, clients = slots): Promise<number> {
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let at = 0; at < requestsPerSlot; at++) await ask(tokens, client * requestsPerSlot + at);
    }),
  );
  return (clients * requestsPerSlot * tokens * 1000) / (performance.now() - begin);
}

/** Compares the other ways with `directly`, round by round. */
function beside(
  { directly, ...others }: Record<string, number[]>,
  how: (own: number, direct: number) => number,
): Found[string] {
  return mapped(others, (each) => medianWithRange(each.map((own, at) => how(own, directly![at]!))));
}

function mapped(all: Record<string, number[]>, of: (values: number[]) => Cell): Found[string] {
  return Object.fromEntries(Object.entries(all).map(([way, each]) => [way, of(each)]));
}

/** Rotates the order by round, because leftover work of one way slows the next. */
function inTurn<Item>(items: readonly Item[], round: number): Item[] {
  const from = round % items.length;
  return [...items.slice(from), ...items.slice(0, from)];
}

const servers: [name: string, open: () => Promise<Behind>][] = [
  ['a paced server', openPaced],
  ["llama.cpp's server", openLlama],
];

/** Results by table, server and way. */
const found: Record<'firsts' | 'added' | 'rates' | 'ratios', Record<string, Found[string]>> = {
  firsts: {},
  added: {},
  rates: {},
  ratios: {},
};

publishAtEnd(() => ({
  name: 'upstream',
  title: 'What a server behind the queue costs',
  notes: [
    `A server with OpenAI's API and ${slots} slots, called directly, through the executor (EXECUTOR=http) in the bench's own process, and through the full system, alternating: first tokens of single requests, and ${throughputRounds} rounds of ${slots * requestsPerSlot} texts of ${tokens} tokens, ${slots} at once.`,
    'The aim is at most 5 ms more for the executor, and at least 0.95 of the tokens per second.',
    `The paced server takes ${pacedMs} ms per token and no CPU, like one on another machine. llama.cpp's (PyPI's xllamacpp, SmolLM2-135M, Q4_1, one thread) shares the cores of this machine with the system.`,
  ],
  tables: [
    tableOf('First token, ms (less is better)', found.firsts),
    tableOf('First token, ms more than directly (less is better)', found.added),
    tableOf('Tokens a second (more is better)', found.rates),
    tableOf('Tokens a second ÷ directly (more is better)', found.ratios),
  ],
}));

it.each(servers)(
  'first token and tokens a second of %s, directly, through the executor, and through a system',
  async (name, open) => {
    const behind = await open();
    const { ask: executed, executor } = executorOf(behind.url, behind.model);
    await executor.start();
    const front = await startSystem({ parts: ['api', 'batch-former', 'janitor'] });
    try {
      const { url: UPSTREAM_URL, model: MODEL_ID } = behind;
      await front.start('worker', { EXECUTOR: 'http', UPSTREAM_URL, MODEL_ID, UPSTREAM_SLOTS: `${slots}` });
      const ways = {
        directly: clientOf(behind.url, behind.model),
        executor: executed,
        system: clientOf(front.url, behind.model),
      };
      const firsts: Record<string, number[]> = { directly: [], executor: [], system: [] };
      const rates: Record<string, number[]> = { directly: [], executor: [], system: [], [queued]: [] };
      for (let round = 0; round < latencyRounds; round++)
        for (const [way, ask] of inTurn(Object.entries(ways), round)) {
          const first = await ask(2, round);
          // The first rounds warm up all ways.
          if (round >= 5) firsts[way]!.push(first);
        }
      for (let round = 0; round < throughputRounds; round++)
        for (const [way, ask] of inTurn(Object.entries({ ...ways, [queued]: ways.system }), round))
          // With twice as many clients, a request always waits for the next free slot.
          rates[way]!.push(await tokensPerSecond(ask, way === queued ? 2 * slots : slots));
      // On a busy machine the tenth percentile is an undisturbed request.
      for (const [quantileName, share] of [
        ['p50', 0.5],
        ['p10', 0.1],
      ] as const)
        found.firsts[`${name}, ${quantileName}`] = mapped(firsts, (each) => quantile(each, share));
      found.added[name] = beside(firsts, (own, direct) => own - direct);
      found.rates[name] = mapped(rates, medianWithRange);
      found.ratios[name] = beside(rates, (own, direct) => own / direct);
    } finally {
      await executor.shutdown();
      await stopSystem(front);
      await behind.stop();
    }
  },
  1_800_000,
);
