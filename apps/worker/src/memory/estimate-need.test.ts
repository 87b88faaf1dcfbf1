import { imageEngine, textEngine } from '@darkroom/executor';
import { expect, it } from 'vitest';
import { estimateNeed } from './estimate-need.ts';

const model = { weightBytes: 900e6, cacheBytes: 0 };

it.each([
  [
    textEngine,
    { ...model, cacheBytes: 50e6, device: 'cpu' },
    { minBytes: 945e6, estimatedBytes: 1050e6, cacheBytes: 50e6 },
  ],
  [imageEngine, { ...model, device: 'cpu' }, { minBytes: 945e6, estimatedBytes: 1960e6, cacheBytes: 0 }],
  [imageEngine, { ...model, device: 'cuda:1' }, { minBytes: 900e6, estimatedBytes: 2200e6, cacheBytes: 0 }],
] as const)('estimates the memory of a $0.id model, %j', ({ memory }, facts, need) => {
  expect(estimateNeed(memory, facts)).toEqual(need);
});
