/** Rolling restart under load: every process is replaced, one at a time, without effect on clients. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createClient, type RequestEvent } from '@darkroom/client';
import { readEvents, readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { type Balancer, startBalancer } from './balancer.ts';
import { openSystem, type Part, type PartName, longWorkerTtl, type System } from '../e2e/system.ts';

const kinds = ['api', 'batch-former', 'janitor', 'worker', 'webhook-sender'] as const;
const image = { prompt: 'a red apple on a white background', num_inference_steps: 20 };
const seeds = 10;
const model = 'emoji-sd';
/** Number of clients that request images one after another. */
const clients = 5;

interface Done {
  id: string;
  seed: number;
  hasWebhook: boolean;
  events: RequestEvent[];
}

interface Receiver {
  url: string;
  /** Types of webhook messages received, by request id. */
  types: Map<string, string[]>;
}

async function startReceiver(): Promise<Receiver> {
  const types = new Map<string, string[]>();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { type, data } = JSON.parse(body) as { type: string; data: { request_id: string } };
      types.set(data.request_id, [...(types.get(data.request_id) ?? []), type]);
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, types };
}

interface Load {
  done: Done[];
  /** Stops sending new requests; resolves when all open requests have ended. */
  stop(): Promise<void>;
}

/** Starts clients that each submit a request, follow it to its end, and submit the next. */
function startLoad({ url }: Balancer, webhookUrl: string): Load {
  const client = createClient({ baseUrl: url });
  const done: Done[] = [];
  const over = new AbortController();
  let requests = 0;
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const number = requests++;
      const hasWebhook = number % 3 === 0;
      const seed = number % seeds;
      const webhook = { webhook_url: webhookUrl, webhook_events: ['started' as const, 'completed' as const] };
      const { request_id: id } = await client.submit({
        ...image,
        preview: { every: 5 },
        seed,
        ...(hasWebhook ? webhook : {}),
      });
      const events: RequestEvent[] = [];
      for await (const event of client.stream(id)) events.push(event);
      done.push({ id, seed, hasWebhook, events });
    }
  };
  const running = Promise.all(Array.from({ length: clients }, run));
  // `stop` awaits the same promise and reports a failed client.
  running.catch(() => {});
  return {
    done,
    async stop() {
      over.abort();
      await running;
    },
  };
}

/** Replaces a process once more requests have ended: starts the new process, then stops the old one. */
async function replace(system: System, old: Part, balancer: Balancer, load: Load): Promise<void> {
  const before = load.done.length;
  await expect.poll(() => load.done.length, { timeout: 120_000 }).toBeGreaterThan(before + clients);
  const fresh = await system.start(old.name);
  if (old.name === 'api') balancer.targets.push(fresh.url);
  await old.stop();
  balancer.targets = balancer.targets.filter((target) => target !== old.url);
  expect([old.name, old.process.exitCode]).toEqual([old.name, 0]);
}

/** Keys that may have no TTL: model records, and empty or bounded queues. */
const mayLackTtl = [
  /:models$/,
  /\}:(?:arrivals|shares|counters|swept|webhooks)$/,
  /:id-secret$/,
  /\}:queue:(?:meta|id|pc|events|marker|metrics:(?:completed|failed)(?::data)?|stalled-check)$/,
  /\{_webhooks\}:secrets$/,
];

async function keysWithoutTtl({ store }: System): Promise<string[]> {
  const keys = (await allKeys(store)).filter((key) => !mayLackTtl.some((pattern) => pattern.test(key)));
  const ttls = await Promise.all(keys.map((key) => store.redis.pttl(key)));
  return keys.filter((_key, index) => ttls[index] === -1);
}

function idsOf(things: readonly { id: string }[]): string[] {
  return things.map(({ id }) => id);
}

function startsOf(events: readonly RequestEvent[]): string[] {
  return events.filter(({ type }) => type === 'started').map(() => 'request.started');
}

/** Checks that each submit created one request, that none is missing, and that a stop costs no attempt. */
async function expectEachOnce({ store }: System, done: readonly Done[]): Promise<void> {
  const prefix = store.keysOf(model).request('');
  const stored = (await allKeys(store)).filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  expect(stored.toSorted()).toEqual(idsOf(done).toSorted());
  for (const { id, events } of done) {
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'succeeded', attempts: 1 } });
    expect(idsOf(events)).toEqual(events.map((_event, index) => `${index + 1}-0`));
    expect((await readEvents(store, id, { after: 0, limit: 10_000 })).length).toBe(events.length);
    expect(events.filter(({ type }) => type === 'succeeded')).toEqual([events.at(-1)]);
  }
  // Some requests started twice: workers requeued them when they stopped.
  expect(done.flatMap(({ events }) => startsOf(events)).length).toBeGreaterThan(done.length);
}

/** Checks that each image has the same bytes as one drawn without load. */
async function expectOwnImages({ url }: Balancer, done: readonly Done[]): Promise<void> {
  const client = createClient({ baseUrl: url });
  for (let seed = 0; seed < seeds; seed++) {
    const { request_id: id } = await client.submit({ ...image, seed, preview: 'off' });
    await client.wait(id);
    const [alone] = await client.images(id);
    const together = done.filter((one) => one.seed === seed).flatMap(({ events }) => events);
    const images = together.filter((event) => event.type === 'image');
    expect(images.length).toBeGreaterThan(0);
    for (const { data } of images) expect(Buffer.compare(data, alone!.data)).toBe(0);
  }
}

async function expectWebhooks({ store }: System, { types }: Receiver, done: readonly Done[]): Promise<void> {
  const withWebhook = done.filter(({ hasWebhook }) => hasWebhook);
  await expect.poll(() => types.size).toBe(withWebhook.length);
  const queue = store.deliveries();
  await expect.poll(() => queue.getJobCountByTypes('wait', 'active', 'delayed', 'failed')).toBe(0);
  for (const { id, events } of withWebhook)
    expect(types.get(id)?.toSorted()).toEqual([...startsOf(events), 'request.succeeded']);
}

it(
  'ends each request once, with its own image and a gapless stream, while every process is replaced under load',
  { timeout: 600_000 },
  async () => {
    const parts: PartName[] = kinds.flatMap((kind) => [kind, kind]);
    const environment = { ...longWorkerTtl, WEBHOOK_ALLOW_PRIVATE: 'true', NUM_THREADS: '1', BATCH_MAX_SIZE: '4' };
    const system = await openSystem({ parts, environment });
    const balancer = await startBalancer(system.parts.filter(({ name }) => name === 'api').map(({ url }) => url));
    const receiver = await startReceiver();
    const load = startLoad(balancer, receiver.url);
    const first = [...system.parts];
    for (const part of first) await replace(system, part, balancer, load);
    await load.stop();

    await expectEachOnce(system, load.done);
    await expectOwnImages(balancer, load.done);
    await expectWebhooks(system, receiver, load.done);
    await Promise.all(system.parts.map((part) => part.stop()));
    expect(system.parts.map(({ name, process, stderr }) => [name, process.exitCode, stderr])).toEqual(
      system.parts.map(({ name }) => [name, 0, '']),
    );
    expect(await keysWithoutTtl(system)).toEqual([]);
    expect(await system.store.redis.xlen(system.store.keysOf(model).webhooks)).toBe(0);
  },
);
