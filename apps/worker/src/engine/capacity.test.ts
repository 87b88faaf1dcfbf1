import type { ModelCard } from '@darkroom/core';
import { expect, it } from 'vitest';
import { capacityOf } from './capacity.ts';

const writer = { kind: 'text', maxModelTokens: 100 } as ModelCard & { maxModelTokens: number };
const options = { tokenBytes: 1000, batchMaxSize: 8, kvTokens: undefined, availableBytes: 1e9 };

it('counts rows for image models', () =>
  expect(capacityOf({ kind: 'image' } as ModelCard, options)).toEqual({ slots: 8 }));

it('counts tokens for text models: batch size times length, limited by memory, at least one short text', () => {
  expect(capacityOf(writer, options)).toEqual({ slots: 800, memoryTokens: 250_000 });
  expect(capacityOf(writer, { ...options, availableBytes: 1_200_000 })).toEqual({ slots: 300, memoryTokens: 300 });
  expect(capacityOf(writer, { ...options, availableBytes: 0 })).toEqual({ slots: 100, memoryTokens: 100 });
  expect(capacityOf(writer, { ...options, kvTokens: 42 })).toEqual({ slots: 42, memoryTokens: 42 });
  const large = { ...writer, maxModelTokens: 131_072 };
  expect(capacityOf(large, { ...options, availableBytes: 4_000_000 })).toEqual({ slots: 1000, memoryTokens: 1000 });
  expect(capacityOf(large, { ...options, availableBytes: 0 })).toEqual({ slots: 256, memoryTokens: 256 });
});
