/** Code points, both ends among them. */
export type CharRange = readonly [from: number, to: number];

const last = 0x10ffff;

/** All other characters. */
export function inverted(ranges: readonly CharRange[]): CharRange[] {
  const others: CharRange[] = [];
  let next = 0;
  for (const [from, to] of ranges.toSorted(([left], [right]) => left - right)) {
    if (from > next) others.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  return next <= last ? [...others, [next, last]] : others;
}

const digits: readonly CharRange[] = [[0x30, 0x39]];
const letters: readonly CharRange[] = [...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
/** Those of ASCII: nobody means the others. */
const spaces: readonly CharRange[] = [
  [9, 13],
  [0x20, 0x20],
];
const classes: Readonly<Record<string, readonly CharRange[]>> = {
  d: digits,
  D: inverted(digits),
  w: letters,
  W: inverted(letters),
  s: spaces,
  S: inverted(spaces),
};
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, '0': 0 };

/** The characters of an escape such as `\d`. */
export function classOfEscape(letter: string): readonly CharRange[] | undefined {
  return Object.hasOwn(classes, letter) ? classes[letter] : undefined;
}

/** The character of an escape such as `\n`. */
export function controlOfEscape(letter: string): readonly CharRange[] | undefined {
  const code = Object.hasOwn(controls, letter) ? controls[letter]! : undefined;
  return code === undefined ? undefined : [[code, code]];
}
