import { describe, expect, it } from 'vitest';
import recorded from '../../../../../tools/golden/vectors/flow-shifts.json' with { type: 'json' };
import { interpolatedShift, squareRootShift } from './flow-shift.ts';
import { parseSchedulerConfig } from '../config/parse-scheduler-config.ts';

function flowOf(fields: Record<string, unknown>) {
  return parseSchedulerConfig({ _class_name: 'FlowMatchEulerDiscreteScheduler', ...fields }).config;
}

describe('the shift that goes with the size of a picture', () => {
  it.each(recorded.interpolated)("is that of diffusers' SD3 pipeline for %s patches: %s", (imageSeqLen, shift) => {
    expect(interpolatedShift(flowOf({}), imageSeqLen)).toBe(shift);
  });

  it.each(recorded.squareRoot)("is that of diffusers' CogView4 pipeline for %s patches: %s", (imageSeqLen, shift) => {
    expect(squareRootShift(flowOf({ base_shift: 0.25, max_shift: 0.75 }), imageSeqLen)).toBe(shift);
  });
});
