import { expect, it } from 'vitest';
import type { Decoder } from '../decoder/decoder.ts';
import { PartedCall } from './parted-call.ts';

/** A call of parts that take so long by the clock of a test. */
function callOf(partsMs: readonly number[]) {
  let atMs = 0;
  let isOver = false;
  async function* runByParts(): ReturnType<Decoder['runByParts']> {
    try {
      for (const [at, ms] of partsMs.entries()) {
        atMs += await Promise.resolve(ms);
        if (at < partsMs.length - 1) yield;
      }
      return [Float32Array.of(1)];
    } finally {
      isOver = true;
    }
  }
  const reads = [{ cache: { length: 0 }, ids: [1, 2, 3], keeps: true, logitsFrom: 2 }];
  const call = new PartedCall({ runByParts } as unknown as Decoder, ['row'], reads, () => atMs);
  return { call, atMs: () => atMs, isOver: () => isOver };
}

it('goes on as long as another part fits into what it may take', async () => {
  const { call, atMs } = callOf([4, 4, 4, 4, 9, 1]);
  const steps: number[] = [];
  for (let logits: unknown; logits === undefined; steps.push(atMs())) logits = await call.goOn(10);
  // Two of four; two more; one, behind which as long a one has no room; the last.
  expect(steps).toEqual([8, 16, 25, 26]);
  expect([call.partMs, call.takenMs, call.tokens]).toEqual([26 / 6, 26, 3]);
});

it('goes on by one part in any case, and to its end where nobody waits', async () => {
  const { call, atMs } = callOf([50, 50, 50]);
  expect(await call.goOn(10)).toBeUndefined();
  expect(atMs()).toBe(50);
  expect(await call.goOn(Infinity)).toEqual([Float32Array.of(1)]);
});

it('lets go of what it has begun when it is given up', async () => {
  const { call, isOver } = callOf([50, 50, 50]);
  await call.goOn(10);
  expect(isOver()).toBe(false);
  await call.drop();
  expect(isOver()).toBe(true);
});
