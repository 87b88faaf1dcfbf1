import { expect, it } from 'vitest';
import { fileName } from './file-name.ts';

it.each([
  ['a red apple, on a white background!', 7, 'image/png', 'darkroom-a-red-apple-on-a-white-background-7.png'],
  ['../../etc/passwd <?>|:*"\\', 1, 'image/jpeg', 'darkroom-etc-passwd-1.jpg'],
  ['ein grüner Apfel 林檎', 2, 'image/webp', 'darkroom-ein-grüner-apfel-林檎-2.webp'],
  ['!!!', 3, 'image/png', 'darkroom-3.png'],
  ['word '.repeat(40), 4, 'image/png', `darkroom-${Array(12).fill('word').join('-')}-4.png`],
])('names the file of %j', (prompt, seed, contentType, name) => {
  expect(fileName(prompt, seed, contentType)).toBe(name);
});
