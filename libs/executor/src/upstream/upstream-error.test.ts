import { describe, expect, it } from 'vitest';
import { shownReason } from './upstream-error.ts';

const unsaid = 'The server that runs this model refused the request.';
const alphabet = 'abcdefghijklmnopqrstuvwxyz';

describe('a reason', () => {
  it.each(Array.from({ length: 14 }, (_, more) => 9 + more))(
    'is not shown with a secret of %i characters in it, wherever that begins',
    (length) => {
      const secret = alphabet.slice(0, length);
      // 299: the one character of it that would be left before the cut.
      const shown = Array.from({ length: 299 }, (_, at) =>
        shownReason(`${'.'.repeat(at)}${secret} is wrong`, [secret]),
      );
      expect(new Set(shown)).toEqual(new Set([unsaid]));
    },
  );

  it('is shown where the secret stands only behind the cut', () => {
    expect(shownReason(`${'.'.repeat(320)}${alphabet}`, [alphabet])).toBe(`${'.'.repeat(299)}…`);
  });

  it('has no half of a character, also where it is cut', () => {
    expect(shownReason(`${'.'.repeat(298)}🦊${'.'.repeat(10)}`)).toBe(`${'.'.repeat(298)}\uFFFD…`);
    expect(shownReason('a\ud83e')).toBe('a\uFFFD');
  });

  it('of megabytes is looked through no further than it is shown', () => {
    const secret = '-'.repeat(1000);
    const looked: string[] = [];
    const counted = { length: secret.length, trim: () => counted, includes: (run: string) => !looked.push(run) };
    shownReason('x'.repeat(4 * 1024 * 1024), [counted as unknown as string]);
    expect(looked.length).toBeLessThan(400);
  });
});
