import { describe, expect, it } from 'vitest';

import { parsePythonJson } from './python-json.ts';
import { parseSchedulerConfig } from '../schedulers/config/parse-scheduler-config.ts';

describe('parsePythonJson', () => {
  it('reads the numbers that JSON does not have', () => {
    expect(parsePythonJson('{"a": -Infinity, "b": [Infinity, NaN], "c": -1.5e3}')).toEqual({
      a: Number.NEGATIVE_INFINITY,
      b: [Number.POSITIVE_INFINITY, null],
      c: -1500,
    });
  });

  it('leaves strings alone', () => {
    const value = { NaN: 'to -Infinity, "NaN" and \\', 'a"': 'Infinity' };
    expect(parsePythonJson(JSON.stringify(value))).toEqual(value);
  });

  it('refuses what is no JSON', () => {
    expect(() => parsePythonJson('{"a": Infinit}')).toThrow(SyntaxError);
  });

  it('reads a DPM-Solver config as diffusers saves it', () => {
    const text = '{"_class_name": "DPMSolverMultistepScheduler", "lambda_min_clipped": -Infinity}';
    expect(parseSchedulerConfig(parsePythonJson(text)).config.lambdaMinClipped).toBe(Number.NEGATIVE_INFINITY);
  });
});
