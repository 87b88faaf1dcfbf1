import { expect, it } from 'vitest';
import type { Turn } from './chat.ts';
import { chatKey, createChatStorage } from './chat-storage.ts';

function openStorage(text?: string) {
  const items = new Map<string, string>(text === undefined ? [] : [[chatKey, text]]);
  return createChatStorage({
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
  });
}

const turn: Turn = { key: 'k', wish: 'something sweet', model: 'm', seed: 7 };

it('stores turns, and only the newest above the limit', () => {
  const storage = openStorage();
  expect(storage.read()).toEqual([]);
  storage.write(Array.from({ length: 201 }, (_value, index) => ({ ...turn, key: `k${index}` })));
  const kept = storage.read();
  expect([kept.length, kept[0]?.key, kept.at(-1)?.key]).toEqual([200, 'k1', 'k200']);
});

it.each(['{', '7', '[null, 7, {"key": 1}, {"key": "k", "wish": "w", "model": "m", "seed": 1, "answer": 5}]'])(
  'skips invalid turns: %s',
  (text) => expect(openStorage(text).read()).toEqual([]),
);
