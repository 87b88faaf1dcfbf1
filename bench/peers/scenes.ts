/** What is asked of everybody, and what is measured of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { cpuSecondsOf } from '../processes.ts';
import { quantile } from '../report.ts';
import { type Asked, batchSize, type RunningPeer } from './peer.ts';

export interface Scene {
  name: string;
  inFlight: number;
  pictures: number;
  /** What the picture at a place of the scene is to be; other seeds for each round. */
  asked: (at: number, round: number) => Asked;
}

/** Behind everybody the same picture. */
export const firstAsked: Asked = {
  prompt: 'a red apple on a white background',
  steps: 20,
  guidance: 3,
  seed: 7,
  width: 128,
  height: 128,
};

const things = [
  'a red apple',
  'a blue fish',
  'a green tree',
  'a yellow star',
  'an orange cat',
  'a brown dog',
  'a pink flower',
];

function equal(steps: number): Scene['asked'] {
  return (at, round) => ({
    ...firstAsked,
    prompt: `${things[at % things.length]!} on a white background`,
    steps,
    seed: 1000 * round + at,
  });
}

/** 8 to 50 steps, guidance 1 to 7, the same for everybody in a round. */
function mixed(at: number, round: number): Asked {
  const random = new RandomNumbers(1000 * round + at);
  const between = (low: number, high: number) => low + Math.floor(random.next() * (high - low + 1));
  return { ...equal(between(8, 50))(at, round), guidance: between(1, 7) };
}

export const scenes: readonly Scene[] = [
  { name: 'idle', inFlight: 1, pictures: 8, asked: equal(20) },
  { name: 'tiny', inFlight: 1, pictures: 16, asked: equal(4) },
  { name: 'uniform', inFlight: 16, pictures: 32, asked: equal(20) },
  { name: 'mixed', inFlight: 16, pictures: 32, asked: mixed },
  { name: 'burst', inFlight: 200, pictures: 200, asked: equal(4) },
];

export interface Measured {
  /** Pictures a second, from the first being asked for to the last being there. */
  rate: number;
  /** From asking to the whole PNG, s, of each picture. */
  seconds: readonly number[];
  /** s. */
  p50: number;
  p99: number;
  /** Milliseconds of a CPU for a picture, of all processes of the peer. */
  cpuMs: number;
}

/** What came of one peer in one round. */
export interface Round {
  measured: ReadonlyMap<string, Measured>;
  stepsAfterLeaving: number | undefined;
}

/** @throws Error if there is no picture, or if fewer steps were taken than were asked for. */
export async function measure(
  peer: RunningPeer,
  { inFlight, pictures, asked }: Scene,
  round: number,
): Promise<Measured> {
  const all = Array.from({ length: pictures }, (_, at) => asked(at, round));
  const stepsBefore = await peer.rowSteps();
  const cpuBefore = cpuSecondsOf(peer.pids());
  const begunAtMs = performance.now();
  const { seconds, png } = await peer.paintAll(all, { inFlight, isBurst: inFlight === pictures });
  const tookS = (performance.now() - begunAtMs) / 1000;
  const cpuS = cpuSecondsOf(peer.pids()) - cpuBefore;
  const steps = (await peer.rowSteps()) - stepsBefore;
  const wanted = all.reduce((total, each) => total + each.steps, 0);
  if (steps < wanted) throw new Error(`${steps} steps of ${wanted} were taken`);
  if (Buffer.from(png).toString('latin1', 1, 4) !== 'PNG') throw new Error('what came is no PNG');
  return {
    rate: pictures / tookS,
    seconds,
    p50: quantile(seconds, 0.5),
    p99: quantile(seconds, 0.99),
    cpuMs: (1000 * cpuS) / pictures,
  };
}

const leaving = { ...firstAsked, steps: 50 };
/** Steps of all of their pictures together that are left when eight clients leave. */
export const stepsLeft = 320;

/** How many steps are computed after eight clients have left. */
export async function leaveAll(peer: RunningPeer): Promise<number | undefined> {
  const { paint } = peer;
  if (paint === undefined) return undefined;
  const before = await peer.rowSteps();
  const leave = new AbortController();
  const clients = Array.from({ length: batchSize }, async (_, seed) => paint({ ...leaving, seed }, leave.signal));
  const all = Promise.allSettled(clients);
  const until = before + leaving.steps * batchSize - stepsLeft;
  while ((await peer.rowSteps()) < until) await delay(10);
  leave.abort();
  const whenLeft = await peer.rowSteps();
  await all;
  return (await untilStill(() => peer.rowSteps())) - whenLeft;
}

const stillMs = 2000;

/** What it is once it has not changed for two seconds. */
async function untilStill(read: () => Promise<number>): Promise<number> {
  for (let last = await read(); ;) {
    await delay(stillMs);
    const now = await read();
    if (now === last) return now;
    last = now;
  }
}
