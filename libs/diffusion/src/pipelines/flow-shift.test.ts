import { describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/flow-shifts.json' with { type: 'json' };
import { parseSchedulerConfig } from '../schedulers/config/parse-scheduler-config.ts';
import { squareRootShift } from './cogview4.ts';
import { interpolatedShift } from './stable-diffusion-3.ts';

function flowOf(fields: Record<string, unknown>) {
  return parseSchedulerConfig({ _class_name: 'FlowMatchEulerDiscreteScheduler', ...fields }).config;
}

describe('the shift that depends on the size of an image', () => {
  it.each(recorded.interpolated)("is that of diffusers' SD3 pipeline for %s patches: %s", (imageSeqLen, shift) => {
    expect(interpolatedShift(flowOf({}), imageSeqLen)).toBe(shift);
  });

  it.each(recorded.squareRoot)("is that of diffusers' CogView4 pipeline for %s patches: %s", (imageSeqLen, shift) => {
    expect(squareRootShift(flowOf({ base_shift: 0.25, max_shift: 0.75 }), imageSeqLen)).toBe(shift);
  });
});
