import { expect, it } from 'vitest';
import { regexSource } from './regex-source.ts';

it.each([
  ['(a+)+$', '(?:(?:a+)+)'],
  ['^a|b$', '(?:a|b)'],
  ['a', '(?:a)'],
])('matches full texts by a regular expression, with or without anchors: %s', (pattern, source) => {
  expect(regexSource(pattern)).toBe(source);
});

it.each([
  ['a$', '(?:(?s:.*)a)'],
  ['^a|b', '(?:a(?s:.*)|(?s:.*)b(?s:.*))'],
  ['^a$', '(?:a)'],
])('searches for a pattern of JSON Schema, which is open at sides without an anchor: %s', (pattern, source) => {
  expect(regexSource(pattern, true)).toBe(source);
});
