/** Workloads for all peers, and their measurement. */
import { setTimeout as delay } from 'node:timers/promises';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { cpuSecondsOf } from '../processes.ts';
import { quantile } from '../report.ts';
import { type ImageRequest, batchSize, type RunningPeer } from './peer.ts';

export interface Scene {
  name: string;
  inFlight: number;
  images: number;
  /** Returns the request at an index; seeds differ per round. */
  requestOf: (at: number, round: number) => ImageRequest;
}

/** Request whose image must be the same for all peers. */
export const firstRequest: ImageRequest = {
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

function equal(steps: number): Scene['requestOf'] {
  return (at, round) => ({
    ...firstRequest,
    prompt: `${things[at % things.length]!} on a white background`,
    steps,
    seed: 1000 * round + at,
  });
}

/** Returns a request of 8 to 50 steps with guidance 1 to 7; the same for all peers in a round. */
function mixed(at: number, round: number): ImageRequest {
  const random = new RandomNumbers(1000 * round + at);
  const between = (low: number, high: number) => low + Math.floor(random.next() * (high - low + 1));
  return { ...equal(between(8, 50))(at, round), guidance: between(1, 7) };
}

export const scenes: readonly Scene[] = [
  { name: 'idle', inFlight: 1, images: 8, requestOf: equal(20) },
  { name: 'tiny', inFlight: 1, images: 16, requestOf: equal(4) },
  { name: 'uniform', inFlight: 16, images: 32, requestOf: equal(20) },
  { name: 'mixed', inFlight: 16, images: 32, requestOf: mixed },
  { name: 'burst', inFlight: 200, images: 200, requestOf: equal(4) },
];

export interface Measured {
  /** Images per second, from the first request to the last image. */
  rate: number;
  /** Seconds from the request to the complete PNG, of each image. */
  seconds: readonly number[];
  /** Latency in s. */
  p50: number;
  p99: number;
  /** CPU ms per image, over all processes of the peer. */
  cpuMs: number;
}

/** Results of one peer in one round. */
export interface Round {
  measured: ReadonlyMap<string, Measured>;
  stepsAfterLeaving: number | undefined;
}

/** Measures a scene. @throws Error if the result is not a PNG, or if fewer steps than requested were computed. */
export async function measure(
  peer: RunningPeer,
  { inFlight, images, requestOf }: Scene,
  round: number,
): Promise<Measured> {
  const all = Array.from({ length: images }, (_, at) => requestOf(at, round));
  const stepsBefore = await peer.rowSteps();
  const cpuBefore = cpuSecondsOf(peer.pids());
  const begunAtMs = performance.now();
  const { seconds, png } = await peer.paintAll(all, { inFlight, isBurst: inFlight === images });
  const tookS = (performance.now() - begunAtMs) / 1000;
  const cpuS = cpuSecondsOf(peer.pids()) - cpuBefore;
  const steps = (await peer.rowSteps()) - stepsBefore;
  const wanted = all.reduce((total, each) => total + each.steps, 0);
  if (steps < wanted) throw new Error(`${steps} steps were computed, expected at least ${wanted}`);
  if (Buffer.from(png).toString('latin1', 1, 4) !== 'PNG') throw new Error('the result is not a PNG');
  return {
    rate: images / tookS,
    seconds,
    p50: quantile(seconds, 0.5),
    p99: quantile(seconds, 0.99),
    cpuMs: (1000 * cpuS) / images,
  };
}

const leaving = { ...firstRequest, steps: 50 };
/** Remaining steps, over all images, when eight clients disconnect. */
export const stepsRemaining = 320;

/** Returns the number of steps computed after eight clients have disconnected. */
export async function stepsAfterDisconnect(peer: RunningPeer): Promise<number | undefined> {
  const { paint } = peer;
  if (paint === undefined) return undefined;
  const before = await peer.rowSteps();
  const leave = new AbortController();
  const clients = Array.from({ length: batchSize }, async (_, seed) => paint({ ...leaving, seed }, leave.signal));
  const all = Promise.allSettled(clients);
  const until = before + leaving.steps * batchSize - stepsRemaining;
  while ((await peer.rowSteps()) < until) await delay(10);
  leave.abort();
  const whenLeft = await peer.rowSteps();
  await all;
  return (await untilStill(() => peer.rowSteps())) - whenLeft;
}

const stillMs = 2000;

/** Returns a value once it has not changed for two seconds. */
async function untilStill(read: () => Promise<number>): Promise<number> {
  for (let last = await read(); ;) {
    await delay(stillMs);
    const now = await read();
    if (now === last) return now;
    last = now;
  }
}
