import { expect, it } from 'vitest';
import { OutputTextLog } from './output-text.ts';

const index = 0;

it('says everything again after so many pieces, and begins to count anew', () => {
  const log = new OutputTextLog();
  const wholes: unknown[] = [];
  for (let offset = 0; offset < 130; offset++) {
    const whole = log.add({ index, offset, text: String(offset % 10) });
    if (whole !== undefined) wholes.push({ before: offset, ...whole });
  }
  const digits = '0123456789'.repeat(13);
  expect(wholes).toEqual([
    { before: 64, index, offset: 0, text: digits.slice(0, 64) },
    { before: 128, index, offset: 0, text: digits.slice(0, 128) },
  ]);
});

it('a piece that begins before the end takes the place of what stood there', () => {
  const log = new OutputTextLog();
  log.add({ index, offset: 0, text: 'a red ' });
  log.add({ index, offset: 6, text: 'apple' });
  log.add({ index, offset: 6, text: 'fox' });
  let whole: unknown;
  for (let piece = 3; piece < 65; piece++) whole = log.add({ index, offset: 9, text: '!' });
  expect(whole).toEqual({ index, offset: 0, text: 'a red fox' });
});

it('says nothing for good of a block that is worked on', () => {
  const log = new OutputTextLog();
  log.add({ index, offset: 0, text: 'a red ' });
  const wholes: unknown[] = [];
  for (let piece = 1; piece < 200; piece++) wholes.push(log.add({ index, offset: 6, text: `fo░ ${piece}` }));
  const whole = { index, offset: 0, text: 'a red ' };
  expect(wholes.filter((each) => each !== undefined)).toEqual([whole, whole, whole]);
});

it('never says that it knows everything when an earlier delivery said the beginning', () => {
  const log = new OutputTextLog();
  for (let offset = 5; offset < 205; offset++) expect(log.add({ index, offset, text: 'x' })).toBeUndefined();
});
