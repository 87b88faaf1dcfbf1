import { expect, it } from 'vitest';
import { checkJsonShape } from './check-json-shape.ts';

function check(text: string): void {
  checkJsonShape(new TextEncoder().encode(text));
}

it.each([
  ['200 levels in a body', '['.repeat(201) + ']'.repeat(201)],
  ['levels beside each other', `[${'[],'.repeat(10_000)}[]]`],
  ['brackets in strings', JSON.stringify({ prompt: '['.repeat(5000) })],
  ['escaped quotes', JSON.stringify({ prompt: `${'"\\'.repeat(300)}${'["'.repeat(300)}` })],
  ['a string that ends with an escaped backslash', `{"a":"\\\\","b":[${'[],'.repeat(10)}[]]}`],
  ['prompts of 128 Ki token ids', JSON.stringify({ prompt: Array.from({ length: 131_072 }, () => 50_000) })],
])('accepts %s', (_name, text) => {
  expect(() => check(text)).not.toThrow();
});

it.each([
  ['depth of arrays', '['.repeat(202), 'nested more than 200 levels'],
  ['depth of objects', '{"a":'.repeat(202), 'nested more than 200 levels'],
  ['depth behind strings with escapes', `{"a":"\\"\\\\","b":${'['.repeat(202)}`, 'nested more than 200 levels'],
  ['members of one object', `{${'"a":0,'.repeat(20_001)}`, 'more than 20000 members'],
  ['members of many objects', `[${'{"a":0},'.repeat(20_001)}`, 'more than 20000 members'],
  ['items', `[${'0,'.repeat(200_001)}`, 'more than 200000 items'],
])('rejects a body over its limit: %s', (_name, text, message) => {
  expect(() => check(text)).toThrow(message);
});
