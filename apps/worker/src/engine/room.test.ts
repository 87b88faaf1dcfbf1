import type { ModelCard } from '@darkroom/core';
import { expect, it } from 'vitest';
import { roomOf } from './room.ts';

const writer = { kind: 'text', maxModelTokens: 100 } as ModelCard & { maxModelTokens: number };
const options = { tokenBytes: 1000, batchMaxSize: 8, kvTokens: undefined, availableBytes: 1e9 };

it('is rows of pictures', () => expect(roomOf({ kind: 'picture' } as ModelCard, options)).toBe(8));

it('is tokens for texts: of as many as share a step, or what memory has, and one short one in any case', () => {
  expect(roomOf(writer, options)).toBe(800);
  expect(roomOf(writer, { ...options, availableBytes: 1_200_000 })).toBe(300);
  expect(roomOf(writer, { ...options, availableBytes: 0 })).toBe(100);
  const large = { ...writer, maxModelTokens: 131_072 };
  expect(roomOf(large, { ...options, availableBytes: 4_000_000 })).toBe(1000);
  expect(roomOf(large, { ...options, availableBytes: 0 })).toBe(256);
  expect(roomOf(writer, { ...options, kvTokens: 42 })).toBe(42);
});
