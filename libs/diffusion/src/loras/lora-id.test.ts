import { expect, it } from 'vitest';
import { loraId } from './lora-id.ts';

it.each(['pixels', 'Pixels_v1.2', 'a', '0-9', 'x'.repeat(64)])(
  'returns the name %s unchanged, because it is a valid id',
  (name) => {
    expect(loraId(name)).toBe(name);
  },
);

it.each([
  ['My Style (v2)', /^My-Style-v2-[0-9a-f]{6}$/],
  ['Émail', /^Email-[0-9a-f]{6}$/],
  ['水彩', /^lora-[0-9a-f]{6}$/],
  ['.hidden', /^hidden-[0-9a-f]{6}$/],
  ['-- ..', /^lora-[0-9a-f]{6}$/],
  ['', /^lora-[0-9a-f]{6}$/],
  ['a/b\n<script>', /^a-b-script-[0-9a-f]{6}$/],
  ['x'.repeat(200), /^x{57}-[0-9a-f]{6}$/],
])('converts %j to a slug with digits of its hash', (name, expected) => {
  expect(loraId(name)).toMatch(expected);
  expect(loraId(name)).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
});

it('gives different names different ids, and a name the same id in composed and decomposed Unicode', () => {
  expect(new Set(['My Style', 'My  Style', 'My-Style', 'My Style ', 'my Style'].map(loraId)).size).toBe(5);
  expect(loraId('É v1'.normalize('NFC'))).toBe(loraId('É v1'.normalize('NFD')));
});
