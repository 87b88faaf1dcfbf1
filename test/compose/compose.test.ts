/** docker-compose.yml on a real Docker engine, while containers are killed, started and scaled. */
import { createClient, type RequestEvent } from '@darkroom/client';
import { parseExposition } from '@darkroom/testing';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { make, type PredictBody } from '../e2e/client.ts';
import { startSystem, stopSystem } from '../e2e/system.ts';
import { Stack } from './stack.ts';

const stack = new Stack();
const upMs = 300_000;
beforeAll(() => stack.up(), upMs);
afterAll(() => stack.down(), upMs);

const things = ['a cat face', 'a red apple', 'a rocket', 'pizza', 'a penguin', 'a guitar', 'a star', 'a panda'];

function requests(count: number, steps: number): PredictBody[] {
  return Array.from({ length: count }, (_value, index) => ({
    prompt: `${things[index % things.length]} on a ${index % 2 ? 'white' : 'green'} background`,
    num_inference_steps: steps + (index % 5),
    seed: 100 * steps + index,
  }));
}

/** Submits and awaits a request with the client library, which retries and reconnects; returns its status. */
async function makeThroughClient(body: PredictBody): Promise<string> {
  const client = createClient({ baseUrl: stack.url });
  const { request_id: id } = await client.submit(body);
  return (await client.wait(id)).status;
}

interface Status {
  workers: { id: string; model: string; loaded: boolean; rows: number; free_rows: number }[];
  queues: {
    model: string;
    queued: number;
    running: number;
    ended: Record<string, number>;
    requeued: Record<string, number>;
  }[];
}

/** Returns the loaded image workers and their queue. */
async function statusOfImages() {
  const response = await fetch(`${stack.url}/status`);
  const { workers, queues } = (await response.json()) as Status;
  return {
    workers: workers.filter(({ model, loaded }) => loaded && model === 'emoji-sd'),
    queue: queues.find(({ model }) => model === 'emoji-sd')!,
  };
}

/** Resolves once both image workers have no free rows. */
async function untilAllAreBusy(): Promise<void> {
  await expect
    .poll(async () => (await statusOfImages()).workers.map((worker) => worker.free_rows), {
      timeout: 60_000,
      interval: 50,
    })
    .toEqual([0, 0]);
}

it('runs every service without root and capabilities on a read-only file system', async () => {
  const services = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const;
  for (const service of services) {
    const [container] = await stack.containers(service);
    const format = '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.Path}}';
    expect((await stack.inspect(container!, format)).trim()).toBe('1000:1000 true [ALL] tini');
    await expect(stack.exec(container!, 'touch', '/app/file')).rejects.toThrow('Read-only file system');
    const packages = (await stack.exec(container!, 'ls', 'node_modules')).split('\n');
    expect([service, packages.includes('onnxruntime-node')]).toEqual([service, service === 'worker']);
  }
});

describe.each(['emoji-writer', 'emoji-writer-diffusion'])('%s', (model) => {
  it('streams text through the balancer without buffering', async () => {
    const chat = { model, messages: [{ role: 'user', content: 'something cold' }] };
    const full = await ask(chat);
    const { choices } = (await full.json()) as { choices: [{ message: { content: string } }] };
    const chunks: string[] = [];
    for await (const data of dataOf(await ask({ ...chat, stream: true }))) if (data !== '[DONE]') chunks.push(data);
    const deltas = chunks.map((data) => (JSON.parse(data) as Chunk).choices[0].delta.content ?? '');
    expect(choices[0].message.content).toMatch(/^an? \w+/);
    expect(deltas.join('')).toBe(choices[0].message.content);
  });

  it('cancels a streaming chat completion when the client disconnects from the balancer', async () => {
    const leaver = new AbortController();
    const long = {
      messages: [{ role: 'user', content: 'something cold' }],
      max_tokens: 240,
      ignore_eos: true,
      n: 8,
      temperature: 2,
    };
    const response = await ask({ model, ...long, stream: true }, leaver.signal);
    for await (const data of dataOf(response)) if ((JSON.parse(data) as Chunk).choices[0].delta.content) break;
    leaver.abort();
    const client = createClient({ baseUrl: stack.url });
    expect((await client.wait(response.headers.get('x-request-id')!)).status).toBe('canceled');
  });
});

interface Chunk {
  choices: [{ delta: { content?: string } }];
}

async function ask(body: object, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

async function* dataOf({ body }: Response): AsyncGenerator<string, void> {
  const events = body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) yield data;
}

it('draws 24 concurrent images through the balancer with the same bytes as a local system', async () => {
  const bodies = requests(24, 6);
  const images = await Promise.all(bodies.map((body) => make(stack.url, body)));
  const local = await startSystem();
  try {
    const expected = await Promise.all(bodies.map((body) => make(local.url, body)));
    expect(images.map((image, index) => image.equals(expected[index]!))).toEqual(bodies.map(() => true));
  } finally {
    await stopSystem(local);
  }
});

it('resumes a stream on another API replica when its own is killed', async () => {
  const client = createClient({ baseUrl: stack.url });
  const { request_id: id } = await client.submit({ prompt: 'a rocket', num_inference_steps: 120, seed: 3 });
  const seen: RequestEvent[] = [];
  let isKilled = false;
  for await (const event of client.stream(id)) {
    seen.push(event);
    if (isKilled || event.type !== 'progress' || event.step < 20) continue;
    isKilled = true;
    await stack.kill(await replicaThatStreams());
  }
  const steps = seen.filter((event) => event.type === 'progress').map(({ step = 0 }) => step);
  // No step comes twice. Steps that ran while no stream was open may be missing.
  expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
  expect(steps.at(-1)).toBe(120);
  expect(seen.at(-1)?.type).toBe('succeeded');
  await stack.scale({ api: 2 });
});

async function replicaThatStreams(): Promise<string> {
  for (const container of await stack.containers('api')) {
    const streams = parseExposition(await stack.metrics(container)).series('darkroom_event_streams');
    if (streams.some(({ value }) => value > 0)) return container;
  }
  throw new Error('no API replica has an open event stream');
}

it('finishes 24 requests when a worker, a batch-former and an API are killed under load', async () => {
  // Looked up before submitting: it takes seconds on a busy machine, in which the work could end.
  const services = ['worker', 'batch-former', 'api'] as const;
  const killed = await Promise.all(services.map(async (service) => (await stack.containers(service))[0]!));
  const outcomes = Promise.all(requests(24, 120).map(makeThroughClient));
  await untilAllAreBusy();
  for (const container of killed) await stack.kill(container);
  expect(await outcomes).toEqual(Array.from({ length: 24 }, () => 'succeeded'));
  const { queue } = await statusOfImages();
  expect(queue.requeued['worker_lost']).toBeGreaterThan(0);
  await stack.scale({ worker: 2, 'batch-former': 2, api: 2 });
});

it('finishes 32 requests while workers and APIs are scaled up and down', async () => {
  const outcomes = Promise.all(requests(32, 60).map(makeThroughClient));
  await untilAllAreBusy();
  await stack.scale({ worker: 4, api: 3 });
  expect((await statusOfImages()).workers).toHaveLength(4);
  await stack.scale({ worker: 1, api: 1 });
  expect(await outcomes).toEqual(Array.from({ length: 32 }, () => 'succeeded'));
  const { queue, workers } = await statusOfImages();
  expect(workers).toHaveLength(1);
  const total = 24 + 1 + 24 + 32;
  expect(queue).toMatchObject({
    queued: 0,
    running: 0,
    ended: { succeeded: total, failed: 0, canceled: 0, expired: 0 },
  });
});

it('logs no errors in any process', async () => {
  const lines = (await stack.logs()).split('\n').filter((line) => /"level":"(?:error|fatal)"/.test(line));
  expect(lines.filter((line) => line.includes('"app"'))).toEqual([]);
});
