/**
 * The embedded model behind Darkroom and behind other servers, with the same files, threads and rows of a batch: one after the
 * other, three times and as often as ten minutes allow, and each alone on the machine. `PEERS=Darkroom,LitServe` measures these once.
 */
import sharp from 'sharp';
import { it } from 'vitest';
import { publish } from '../publish.ts';
import { darkroom } from './darkroom-peer.ts';
import { lossesOf, tablesOf } from './findings.ts';
import { batchSize, type Peer, threads } from './peer.ts';
import { providePython, versionOf } from './python-environment.ts';
import { pythonPeers } from './python-peers.ts';
import { firstAsked, leaveAll, measure, type Measured, type Round, scenes } from './scenes.ts';

const budgetMs = 600_000;
/** Of fewer there is no middle one. */
const leastRounds = 3;

it('beside others', { timeout: 3_600_000 }, async () => {
  providePython();
  const wanted = process.env['PEERS']?.split(',');
  const peers = [darkroom, ...pythonPeers].filter(({ name }) => wanted?.includes(name) ?? true);
  const rounds = new Map<Peer, Round[]>(peers.map((peer) => [peer, []]));
  const pictures = new Map<Peer, Uint8Array>();
  /** Who could not run here, and why. */
  const failures = new Map<Peer, string>();
  const begunAtMs = performance.now();
  const isTimeFor = (round: number): boolean => {
    const spentMs = performance.now() - begunAtMs;
    if (wanted !== undefined) return round === 1;
    return round <= leastRounds || spentMs + spentMs / (round - 1) <= budgetMs;
  };
  for (let round = 1; isTimeFor(round); round++) {
    for (let at = 0; at < peers.length; at++) {
      const peer = peers[(at + round) % peers.length]!;
      if (failures.has(peer)) continue;
      try {
        const { png, ...found } = await takeRound(peer, round);
        pictures.set(peer, png);
        rounds.get(peer)!.push(found);
      } catch (error) {
        failures.set(peer, String(error));
        rounds.delete(peer);
      }
    }
  }
  const furthest = await furthestApart([...pictures.values()]);
  publish({
    name: 'peers',
    title: 'Pictures: Darkroom beside other servers',
    notes: [
      `The same INT8 files of models/emoji-sd behind everybody, ONNX Runtime with ${threads} threads, ${batchSize} rows a batch; peers took turns. Rounds: ${Math.max(...[...rounds.values()].map(({ length }) => length))}; medians, with the lowest and the highest.`,
      'Idle: one picture of 20 steps at a time. Tiny: of 4 steps. Uniform: 20 steps, 16 in flight. Mixed: 8 to 50 steps, guidance 1 to 7, 16 in flight. Burst: 200 of 4 steps at once. Pictures are 128 × 128, and a PNG at the client.',
      'CPU is that of all processes of a peer, Redis included.',
      `The picture of a seed is the same behind everybody: no value of it is more than ${furthest} of 255 apart.`,
      ...[...failures].map(([{ name }, error]) => `${name} could not run here: ${error}`),
      ...lossesOf(rounds),
    ],
    tables: tablesOf(rounds),
    versions: {
      'onnxruntime (Python)': versionOf('onnxruntime'),
      LitServe: versionOf('litserve'),
      BentoML: versionOf('bentoml'),
      'Ray Serve': versionOf('ray'),
    },
  });
});

/** All scenes of a peer that is started for them. */
async function takeRound(peer: Peer, round: number): Promise<Round & { png: Uint8Array }> {
  const running = await peer.start();
  try {
    const { png } = await running.paintAll([firstAsked], { inFlight: 1, isBurst: false });
    // Nobody is to meet a batch of any size for the first time later.
    const [, tiny, uniform] = scenes;
    await running.paintAll(
      Array.from({ length: 2 * batchSize }, (_, at) => tiny!.asked(at, 0)),
      { ...uniform!, isBurst: false },
    );
    const measured = new Map<string, Measured>();
    for (const scene of scenes) {
      const found = await measure(running, scene, round);
      measured.set(scene.name, found);
      const { rate, p50, p99, cpuMs } = found;
      console.log(
        `round ${round}, ${peer.name}, ${scene.name}: ${rate.toFixed(2)}/s, p50 ${p50.toFixed(3)} s, p99 ${p99.toFixed(3)} s, CPU ${cpuMs.toFixed(0)} ms`,
      );
    }
    const stepsAfterLeaving = await leaveAll(running);
    console.log(`round ${round}, ${peer.name}: ${stepsAfterLeaving} steps after leaving`);
    return { measured, stepsAfterLeaving, png };
  } finally {
    await running.stop();
  }
}

const mostApart = 8;

/** By how much a value of the pictures differs from the first one's, at most. @throws Error if they are not the same picture. */
async function furthestApart(pngs: readonly Uint8Array[]): Promise<number> {
  const [first, ...others] = await Promise.all(pngs.map((png) => sharp(png).raw().toBuffer()));
  const apart = others.map((pixels) => Math.max(...pixels.map((value, at) => Math.abs(value - first![at]!))));
  const furthest = Math.max(0, ...apart);
  if (furthest > mostApart) throw new Error(`pictures of one seed are ${apart.join(', ')} of 255 apart`);
  console.log(`pictures of one seed (${firstAsked.seed}) are at most ${furthest} of 255 apart`);
  return furthest;
}
