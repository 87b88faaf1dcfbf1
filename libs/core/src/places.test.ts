import { expect, it } from 'vitest';
import { createPlaces } from './places.ts';

it('gives each holder so many places, and one that was given back again', () => {
  const places = createPlaces(1);
  const giveBack = places.take('a');
  expect(places.take('a')).toBeUndefined();
  expect(places.take('b')).toBeDefined();
  giveBack?.();
  const second = places.take('a');
  expect(second).toBeDefined();
  // Given back twice is given back once.
  giveBack?.();
  expect(places.take('a')).toBeUndefined();
});
