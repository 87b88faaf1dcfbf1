import type { ModelCard } from '@darkroom/core';
import { expect, it } from 'vitest';
import { roomOf } from './room.ts';

const writer = { kind: 'text', maxModelTokens: 100 } as ModelCard & { maxModelTokens: number };
const options = { tokenBytes: 1000, batchMaxSize: 8, kvTokens: undefined, availableBytes: 1e9 };

it('is rows of pictures', () => expect(roomOf({ kind: 'picture' } as ModelCard, options)).toEqual({ slots: 8 }));

it('is tokens for texts: of as many as share a step, or what memory has, and one short one in any case', () => {
  expect(roomOf(writer, options)).toEqual({ slots: 800, memoryTokens: 250_000 });
  expect(roomOf(writer, { ...options, availableBytes: 1_200_000 })).toEqual({ slots: 300, memoryTokens: 300 });
  expect(roomOf(writer, { ...options, availableBytes: 0 })).toEqual({ slots: 100, memoryTokens: 100 });
  expect(roomOf(writer, { ...options, kvTokens: 42 })).toEqual({ slots: 42, memoryTokens: 42 });
  const large = { ...writer, maxModelTokens: 131_072 };
  expect(roomOf(large, { ...options, availableBytes: 4_000_000 })).toEqual({ slots: 1000, memoryTokens: 1000 });
  expect(roomOf(large, { ...options, availableBytes: 0 })).toEqual({ slots: 256, memoryTokens: 256 });
});
