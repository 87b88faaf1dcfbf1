import { expect, it } from 'vitest';
import { GroupMoments } from './group-moments.ts';

/** 4 channels, 5 rows, 3 columns of values far from 0, for which sums of squares around 0 would cancel. */
const data = Float32Array.from({ length: 60 }, (_, at) => 1000 + Math.sin(at) * (at < 30 ? 1 : 5));
const dims = [1, 4, 5, 3];

it('computes the mean and the deviation of each group, the same from tiles as from one tensor', () => {
  const pieces = new GroupMoments(2);
  for (const [first, count] of [
    [0, 1],
    [1, 3],
    [4, 1],
  ] as const)
    pieces.add({ data, dims }, { first, count });
  const whole = new GroupMoments(2);
  whole.add({ data, dims }, { first: 0, count: 5 });

  const means = [0, 1].map((group) => average(data.subarray(group * 30, group * 30 + 30)));
  const variances = [0, 1].map((group) =>
    average(data.subarray(group * 30, group * 30 + 30).map((value) => (value - means[group]!) ** 2)),
  );
  for (const moments of [pieces, whole]) {
    const { means: found, inverses } = moments.read(0.5);
    for (const group of [0, 1]) {
      expect(found[group]).toBeCloseTo(means[group]!, 3);
      expect(inverses[group]).toBeCloseTo(1 / Math.sqrt(variances[group]! + 0.5), 4);
    }
  }
});

function average(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
