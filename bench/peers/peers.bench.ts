/**
 * The embedded model on Darkroom and on other servers, with the same files, threads and batch size. Servers run one at
 * a time, for at least three rounds and as many as fit ten minutes. `PEERS=Darkroom,LitServe` measures these once.
 */
import sharp from 'sharp';
import { it } from 'vitest';
import { publish } from '../publish.ts';
import { darkroom } from './darkroom-peer.ts';
import { lossesOf, tablesOf } from './findings.ts';
import { batchSize, type Peer, threads } from './peer.ts';
import { providePython, versionOf } from './python-environment.ts';
import { pythonPeers } from './python-peers.ts';
import { firstRequest, stepsAfterDisconnect, measure, type Measured, type Round, scenes } from './scenes.ts';

const budgetMs = 600_000;
/** Minimum rounds, for a median. */
const minRounds = 3;

it('Darkroom against other servers', { timeout: 3_600_000 }, async () => {
  providePython();
  const wanted = process.env['PEERS']?.split(',');
  const peers = [darkroom, ...pythonPeers].filter(({ name }) => wanted?.includes(name) ?? true);
  const rounds = new Map<Peer, Round[]>(peers.map((peer) => [peer, []]));
  const images = new Map<Peer, Uint8Array>();
  /** Errors of peers that could not run here. */
  const failures = new Map<Peer, string>();
  const begunAtMs = performance.now();
  const isTimeFor = (round: number): boolean => {
    const spentMs = performance.now() - begunAtMs;
    if (wanted !== undefined) return round === 1;
    return round <= minRounds || spentMs + spentMs / (round - 1) <= budgetMs;
  };
  for (let round = 1; isTimeFor(round); round++) {
    for (let at = 0; at < peers.length; at++) {
      const peer = peers[(at + round) % peers.length]!;
      if (failures.has(peer)) continue;
      try {
        const { png, ...found } = await runRound(peer, round);
        images.set(peer, png);
        rounds.get(peer)!.push(found);
      } catch (error) {
        failures.set(peer, String(error));
        rounds.delete(peer);
      }
    }
  }
  const maxDifference = await checkSameImages([...images.values()]);
  publish({
    name: 'peers',
    title: 'Images: Darkroom beside other servers',
    notes: [
      `All peers use the same INT8 files of models/emoji-sd, ONNX Runtime with ${threads} threads, and batches of ${batchSize} rows; peers alternate. Rounds: ${Math.max(...[...rounds.values()].map(({ length }) => length))}; medians, with minimum and maximum.`,
      'Idle: one image of 20 steps at a time. Tiny: of 4 steps. Uniform: 20 steps, 16 in flight. Mixed: 8 to 50 steps, guidance 1 to 7, 16 in flight. Burst: 200 of 4 steps at once. Images are 128 × 128, received as PNG.',
      'CPU time is of all processes of a peer, including Redis.',
      `All peers generate the same image for a seed: values differ by at most ${maxDifference} of 255.`,
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

/** Starts a peer, measures all scenes, and stops it. */
async function runRound(peer: Peer, round: number): Promise<Round & { png: Uint8Array }> {
  const running = await peer.start();
  try {
    const { png } = await running.paintAll([firstRequest], { inFlight: 1, isBurst: false });
    // Warm up all batch sizes.
    const [, tiny, uniform] = scenes;
    await running.paintAll(
      Array.from({ length: 2 * batchSize }, (_, at) => tiny!.requestOf(at, 0)),
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
    const stepsAfterLeaving = await stepsAfterDisconnect(running);
    console.log(`round ${round}, ${peer.name}: ${stepsAfterLeaving} steps after leaving`);
    return { measured, stepsAfterLeaving, png };
  } finally {
    await running.stop();
  }
}

const maxAllowedDifference = 8;

/** Returns the maximum difference of a value from the first image. @throws Error if the images are not the same. */
async function checkSameImages(pngs: readonly Uint8Array[]): Promise<number> {
  const [first, ...others] = await Promise.all(pngs.map((png) => sharp(png).raw().toBuffer()));
  const apart = others.map((pixels) => Math.max(...pixels.map((value, at) => Math.abs(value - first![at]!))));
  const maxDifference = Math.max(0, ...apart);
  if (maxDifference > maxAllowedDifference) throw new Error(`images of one seed are ${apart.join(', ')} of 255 apart`);
  console.log(`images of one seed (${firstRequest.seed}) are at most ${maxDifference} of 255 apart`);
  return maxDifference;
}
