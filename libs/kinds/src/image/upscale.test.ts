import { describe, expect, it } from 'vitest';
import { outputSize, upscaleOverlap, upscalePieceSide, upscaleTilesOf, upscaleSteps } from './upscale.ts';

describe('the tiles of a side', () => {
  it.each([8, 64, 256, 264, 384, 448, 1000, 1024, 2048])('of %d pixels have one length and cover all of it', (side) => {
    const pieces = upscaleTilesOf(side);
    const length = Math.min(side, upscalePieceSide);
    expect(new Set(pieces.map(({ from, to }) => to - from))).toEqual(new Set([length]));
    expect(pieces.flatMap(({ first, last }) => Array.from({ length: last - first }, (_, at) => first + at))).toEqual(
      Array.from({ length: side }, (_, at) => at),
    );
    for (const { from, to, first, last } of pieces) {
      // Inner edges of tiles have this much overlap.
      expect(first - from >= upscaleOverlap || from === 0).toBe(true);
      expect(to - last >= upscaleOverlap || to === side).toBe(true);
    }
  });
});

describe('an upscaled image', () => {
  it('takes one step per tile, and none without upscaling', () => {
    expect(upscaleSteps({ width: 1024, height: 512 })).toBe(0);
    expect(upscaleSteps({ width: 256, height: 64, upscale: 4 })).toBe(1);
    expect(upscaleSteps({ width: 1024, height: 512, upscale: 2 })).toBe(6 * 3);
  });

  it('has sides multiplied by the factor', () => {
    expect(outputSize({ width: 128, height: 64 })).toEqual({ width: 128, height: 64 });
    expect(outputSize({ width: 128, height: 64, upscale: 4 })).toEqual({ width: 512, height: 256 });
  });
});
