/**
 * CPU time per image outside the engine, by process: for images of 20 steps, one at a time and 16 in flight, with an
 * event stream or one waiting request (`Prefer: wait`). CPU time depends little on other load of the machine.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { type PartName, startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { childrenOf, cpuSecondsOf, redisPid, writesOf } from './processes.ts';
import { publish } from './publish.ts';
import { cpuOf as cpuOfRedis } from './redis-cpu.ts';
import { tableOf } from './table.ts';

const images = 64;
const restMs = 10_000;
const scriptsName = 'scripts that Redis ran';
const writesName = 'writes of all processes to each other';
const pings = 250;
const sumNames = ['all but the engine', 'of that, as much as at rest'] as const;
const body = {
  prompt: 'a red apple on a white background',
  num_inference_steps: 20,
  guidance_scale: 3,
  size: '128x128',
  preview: 'off',
};

type Client = (url: string, seed: number) => Promise<void>;

const clients: Readonly<Record<string, Client>> = {
  async events(url, seed) {
    const outcome = await ended(url, await submit(url, { ...body, seed }));
    if (outcome !== 'succeeded') throw new Error(`an image ${outcome}`);
  },
  async wait(url, seed) {
    const headers = { 'content-type': 'application/json', prefer: 'wait' };
    const response = await fetch(`${url}/v1/predict`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ ...body, seed }),
    });
    const answer = (await response.json()) as { status: string; request_id: string };
    // On a busy machine the server's maximum wait may expire first.
    const { status } = response.status === 202 ? await awaited(url, answer.request_id) : answer;
    if (status !== 'succeeded') throw new Error(`an image ${status}`);
  },
};

async function awaited(url: string, id: string): Promise<{ status: string }> {
  const response = await fetch(`${url}/v1/predict/${id}?wait=60`);
  return response.status === 202 ? awaited(url, id) : ((await response.json()) as { status: string });
}

/** Returns the CPU seconds so far of each process involved in an image. */
function cpuOf(system: System): Record<string, number> {
  const pidOf = (name: PartName): number => system.part(name).process.pid!;
  const worker = pidOf('worker');
  const of = (name: PartName): number => cpuSecondsOf([pidOf(name)]);
  return {
    api: of('api'),
    'batch-former': of('batch-former'),
    'worker, without its engine': cpuSecondsOf([worker]),
    janitor: of('janitor'),
    redis: cpuSecondsOf([redisPid()]),
    engine: cpuSecondsOf(childrenOf(worker)),
  };
}

/** Returns the number of scripts that Redis has run so far. */
async function scriptsOf({ store }: System): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await store.redis.info('commandstats'))?.[1] ?? 0);
}

/** Returns the number of write calls so far, over all processes. */
function writesOfAll(system: System): number {
  const pids = ['api', 'batch-former', 'janitor', 'worker'].map((name) => system.part(name as PartName).process.pid!);
  return [...pids, ...childrenOf(system.part('worker').process.pid!), redisPid()].reduce(
    (sum, pid) => sum + writesOf(pid),
    0,
  );
}

/** Returns the CPU ms at both ends of a message to Redis and its reply. */
async function measurePing({ store }: System, pauseMs: number): Promise<number> {
  const spend = async (ask: () => Promise<unknown>): Promise<number> => {
    const before = { own: process.cpuUsage(), redis: await cpuOfRedis(store) };
    for (let at = 0; at < pings; at++) {
      await ask();
      if (pauseMs > 0) await delay(pauseMs);
    }
    const { user, system } = process.cpuUsage(before.own);
    return (user + system + (await cpuOfRedis(store)) - before.redis) / 1000 / pings;
  };
  return (await spend(() => store.redis.ping())) - (await spend(() => Promise.resolve()));
}

/** Returns the CPU ms per second of each process while the system is idle. */
async function measureRest(system: System): Promise<Record<string, number>> {
  const before = cpuOf(system);
  await delay(restMs);
  return Object.fromEntries(
    Object.entries(cpuOf(system)).map(([name, seconds]) => [name, ((seconds - before[name]!) * 1e6) / restMs]),
  );
}

interface Round {
  client: Client;
  inFlight: number;
  rest: Record<string, number>;
}

async function measure(system: System, { client, inFlight, rest }: Round): Promise<Record<string, number>> {
  const beginMs = performance.now();
  const before = { cpu: cpuOf(system), scripts: await scriptsOf(system), writes: writesOfAll(system) };
  let next = 0;
  const run = async (): Promise<void> => {
    while (next < images) await client(system.url, next++);
  };
  await Promise.all(Array.from({ length: inFlight }, run));
  const cpu = Object.entries(cpuOf(system)).map(([name, seconds]) => {
    return [name, ((seconds - before.cpu[name]!) * 1000) / images] as const;
  });
  const outside = sumOutside(cpu);
  const atRest = (sumOutside(Object.entries(rest)) * (performance.now() - beginMs)) / 1000 / images;
  const scripts = ((await scriptsOf(system)) - before.scripts) / images;
  return {
    [sumNames[0]]: outside,
    [sumNames[1]]: atRest,
    ...Object.fromEntries(cpu),
    [scriptsName]: scripts,
    [writesName]: (writesOfAll(system) - before.writes) / images,
  };
}

function sumOutside(cpu: readonly (readonly [name: string, ms: number])[]): number {
  return cpu.reduce((sum, [name, ms]) => (name === 'engine' ? sum : sum + ms), 0);
}

it('CPU milliseconds per image', async () => {
  const system = await startSystem();
  try {
    for (const client of Object.values(clients)) await measure(system, { client, inFlight: 16, rest: {} });
    const apart = await measurePing(system, 40);
    const ping = { 'one after the other': await measurePing(system, 0), '40 ms apart': apart };
    const rest = await measureRest(system);
    const found: Record<string, Record<string, number>> = {};
    for (const [name, client] of Object.entries(clients))
      for (const inFlight of [1, 16])
        found[`${inFlight} in flight, ${name}`] = await measure(system, { client, inFlight, rest });
    publish({
      name: 'added-latency-cpu',
      title: 'What an image takes of a CPU beside its engine',
      notes: [
        `${images} images of 20 steps and 128 × 128 for each figure, guidance 3, followed as events or waited for in one answer (Prefer: wait); by /proc/<pid>/stat.`,
        'The aim is 10 ms for an image alone, and 6 ms under load.',
        'The figures include what the processes use while idle; a separate row shows it.',
        'The limit: each message wakes a process whose caches were evicted by others, so it costs several times what back-to-back messages cost. The number of messages decides. Fewer messages would need fewer processes: no separate batch-former, no engine process.',
      ],
      tables: [
        tableOf('ms of a CPU for an image, without the engine (less is better)', found, sumNames),
        tableOf(
          'Of each process, ms of a CPU for an image (less is better)',
          found,
          Object.keys(rest).filter((name) => name !== 'engine'),
        ),
        tableOf('And', found, ['engine', scriptsName, writesName], false),
        tableOf(
          'A message to Redis and its answer, ms of a CPU at both ends (less is better)',
          { ms: ping },
          undefined,
          false,
        ),
        tableOf('At rest, ms of a CPU in a second (less is better)', {
          ms: { [sumNames[0]]: sumOutside(Object.entries(rest)), ...rest },
        }),
      ],
    });
  } finally {
    await stopSystem(system);
  }
}, 600_000);
