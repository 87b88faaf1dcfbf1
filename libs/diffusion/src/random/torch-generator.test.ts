import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { TorchGenerator } from './torch-generator.ts';

interface Recording {
  torch: string;
  draws: { seed: number; sizes: number[]; values: number[][] }[];
}

const recording = JSON.parse(
  readFileSync(new URL('../../../../tools/golden/vectors/torch-randn.json', import.meta.url), 'utf8'),
) as Recording;

// torch computes log, sin and cos in float32 vector code, exact to one or two units in the last place; most values here
// are equal to the bit, the worst differs by 2.4e-7. Omitting the angle's rounding to float32 exceeds that.
const TOLERANCE = 5e-7;

function draw(generator: TorchGenerator, size: number): Float32Array {
  const values = new Float32Array(size);
  generator.fillNormal(values);
  return values;
}

/** Returns the part of an array that the recording contains. */
function recordedPart(values: Float32Array): Float32Array {
  return values.length <= 40 ? values : Float32Array.from([...values.subarray(0, 24), ...values.subarray(-16)]);
}

describe('a generator', () => {
  it.each(recording.draws)('agrees with torch.randn for seed $seed, sizes $sizes', ({ seed, sizes, values }) => {
    const generator = new TorchGenerator({ seed });
    for (const [index, size] of sizes.entries()) {
      const ours = recordedPart(draw(generator, size));
      const theirs = Float32Array.from(values[index]!);
      expect(ours).toHaveLength(theirs.length);
      const worst = ours.reduce((most, value, at) => Math.max(most, Math.abs(value - theirs[at]!)), 0);
      expect(worst).toBeLessThan(TOLERANCE);
    }
  });

  it('uses only the low 32 bits of the seed, as torch does', () => {
    expect(draw(new TorchGenerator({ seed: 2 ** 32 + 7 }), 32)).toEqual(draw(new TorchGenerator({ seed: 7 }), 32));
  });

  it('draws standard normal values', () => {
    const values = draw(new TorchGenerator({ seed: 3 }), 100_000);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    expect(mean).toBeCloseTo(0, 1);
    expect(variance).toBeCloseTo(1, 1);
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 53])('refuses the seed %s', (seed) => {
    expect(() => new TorchGenerator({ seed })).toThrow(RangeError);
  });
});

describe('a generator restored from a snapshot', () => {
  // Draws of odd, short lengths leave a spare value; 700 values exceed the 624 words of the twister's state.
  const sizes = [3, 16, 1, 40, 700, 5, 624, 7, 2];

  it('continues with identical bits after any call', () => {
    const whole = new TorchGenerator({ seed: 42 });
    const expected = sizes.map((size) => draw(whole, size));
    for (const stop of sizes.keys()) {
      const before = new TorchGenerator({ seed: 42 });
      for (const size of sizes.slice(0, stop)) draw(before, size);
      const after = new TorchGenerator(structuredClone(before.snapshot()));
      expect(sizes.slice(stop).map((size) => draw(after, size))).toEqual(expected.slice(stop));
      expect(after.snapshot()).toEqual(whole.snapshot());
    }
  });

  it('can be stored as JSON', () => {
    const generator = new TorchGenerator({ seed: 42 });
    draw(generator, 3);
    const copy = new TorchGenerator(JSON.parse(JSON.stringify(generator.snapshot())));
    expect(draw(copy, 5)).toEqual(draw(generator, 5));
  });

  it('does not change the original generator', () => {
    const generator = new TorchGenerator({ seed: 1 });
    draw(new TorchGenerator(generator.snapshot()), 64);
    expect(generator.snapshot()).toEqual({ seed: 1, drawn: 0, spare: null });
  });

  it('refuses a count that is not a non-negative integer', () => {
    expect(() => new TorchGenerator({ seed: 1, drawn: -4, spare: null })).toThrow(/drawn must be an integer/);
  });
});
