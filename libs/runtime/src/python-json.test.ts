import { describe, expect, it } from 'vitest';

import { parsePythonJson } from './python-json.ts';

describe('parsePythonJson', () => {
  it('reads NaN and infinities, which JSON lacks', () => {
    expect(parsePythonJson('{"a": -Infinity, "b": [Infinity, NaN], "c": -1.5e3}')).toEqual({
      a: Number.NEGATIVE_INFINITY,
      b: [Number.POSITIVE_INFINITY, null],
      c: -1500,
    });
  });

  it('does not change strings', () => {
    const value = { NaN: 'to -Infinity, "NaN" and \\', 'a"': 'Infinity' };
    expect(parsePythonJson(JSON.stringify(value))).toEqual(value);
  });

  it('refuses invalid JSON', () => {
    expect(() => parsePythonJson('{"a": Infinit}')).toThrow(SyntaxError);
  });
});
