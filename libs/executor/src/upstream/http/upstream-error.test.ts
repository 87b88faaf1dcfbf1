import { describe, expect, it } from 'vitest';
import { safeReason } from './upstream-error.ts';

const hiddenReason = 'The server that runs this model refused the request.';
const alphabet = 'abcdefghijklmnopqrstuvwxyz';

describe('the reason of an upstream error', () => {
  it.each(Array.from({ length: 14 }, (_, more) => 9 + more))(
    'is hidden if it contains a secret of %i characters at any position',
    (length) => {
      const secret = alphabet.slice(0, length);
      // At the last position, 298, one character of the secret would remain before the cut.
      const reasons = Array.from({ length: 299 }, (_, at) =>
        safeReason(`${'.'.repeat(at)}${secret} is wrong`, [secret]),
      );
      expect(new Set(reasons)).toEqual(new Set([hiddenReason]));
    },
  );

  it('is shown if the secret is entirely behind the cut', () => {
    expect(safeReason(`${'.'.repeat(320)}${alphabet}`, [alphabet])).toBe(`${'.'.repeat(299)}…`);
  });

  it('contains no half of a surrogate pair, also at the cut', () => {
    expect(safeReason(`${'.'.repeat(298)}🦊${'.'.repeat(10)}`)).toBe(`${'.'.repeat(298)}\uFFFD…`);
    expect(safeReason('a\ud83e')).toBe('a\uFFFD');
  });

  it('is searched for secrets only up to shortly behind the cut', () => {
    const secret = '-'.repeat(1000);
    const comparedRuns: string[] = [];
    const counted = { length: secret.length, trim: () => counted, includes: (run: string) => !comparedRuns.push(run) };
    safeReason('x'.repeat(4 * 1024 * 1024), [counted as unknown as string]);
    expect(comparedRuns.length).toBeLessThan(400);
  });
});
