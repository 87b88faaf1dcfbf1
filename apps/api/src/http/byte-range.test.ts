import { expect, it } from 'vitest';
import { parseByteRange } from './byte-range.ts';

it.each([
  ['bytes=0-0', { status: 'partial', first: 0, last: 0 }],
  ['bytes=2-4', { status: 'partial', first: 2, last: 4 }],
  ['bytes=2-', { status: 'partial', first: 2, last: 9 }],
  ['bytes=2-99', { status: 'partial', first: 2, last: 9 }],
  ['bytes=-3', { status: 'partial', first: 7, last: 9 }],
  ['bytes=-99', { status: 'partial', first: 0, last: 9 }],
  ['bytes=10-', { status: 'unsatisfiable' }],
  ['bytes=10-20', { status: 'unsatisfiable' }],
  ['bytes=-0', { status: 'unsatisfiable' }],
  [undefined, { status: 'full' }],
  ['', { status: 'full' }],
  ['bytes=4-2', { status: 'full' }],
  ['bytes=0-1,4-5', { status: 'full' }],
  ['bytes=-', { status: 'full' }],
  ['bytes=a-b', { status: 'full' }],
  ['pages=1-2', { status: 'full' }],
  [`bytes=0-${'9'.repeat(400)}`, { status: 'full' }],
])('parses Range %s of a ten-byte file', (header, expected) => {
  expect(parseByteRange(header, 10)).toEqual(expected);
});

it('reports every range of an empty file as unsatisfiable', () => {
  for (const header of ['bytes=0-', 'bytes=-5']) expect(parseByteRange(header, 0)).toEqual({ status: 'unsatisfiable' });
});
